"""The cells of a sheet as JSON data: dates as text, merged ranges, formulas without a stored value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from typing import Any

import attrs

_FORMULA, _ERROR = "f", "e"


class BadCell(Exception):
    """The value of a cell cannot be read; the message says why."""


@attrs.frozen
class Cell:
    """A cell that is not empty: its *value* as JSON data, or the *fault* that it has. *is_error* is for values such as ``#N/A``."""

    value: Any
    is_error: bool = False
    fault: str | None = None

    def checked(self, is_used: bool) -> Any:
        """Return the value.

        :raises BadCell: where there is none, or an error value is in a column that *is_used* as a part of the subject.
        """
        if self.fault is not None:
            raise BadCell(self.fault)
        if self.is_error and is_used:
            raise BadCell(f"has the error {self.value}; correct the formula, or clear the cell")
        return self.value


def cells_of(sheet: Any, formulas: Any | None) -> Iterator[tuple[int, Mapping[int, Cell]]]:
    """Yield the number of each row of the openpyxl *sheet* and its cells by column, from 1; empty cells are left out.

    *formulas* is the same sheet with formulas in place of values; with it, formulas without a stored value are faults.
    """
    for reading in (sheet, formulas):
        if reading is not None:
            reading.reset_dimensions()  # the size that the file states may be wrong, and cells beyond it would be lost
    merged = _merged_ranges(sheet)
    values: dict[tuple[int, int, int, int], Cell] = {}
    formula_rows = iter(()) if formulas is None else formulas.iter_rows()
    number = 0
    for number, row in enumerate(sheet.iter_rows(), 1):
        cells = {cell.column: _cell(cell) for cell in row if cell.value is not None and cell.value != ""}
        for formula in next(formula_rows, ()):
            if formula.value is not None and formula.data_type == _FORMULA and formula.column not in cells:
                cells[formula.column] = Cell(None, fault=_NOT_STORED)
        _spread(number, cells, merged, values)
        yield number, cells
    for below in range(number + 1, max((last for *_, last in merged), default=0) + 1):
        cells = {}
        _spread(below, cells, merged, values)
        yield below, cells


def has_values(sheet: Any) -> bool:
    """Return whether a cell of the openpyxl *sheet* has a value."""
    sheet.reset_dimensions()
    return any(cell.value is not None for row in sheet.iter_rows() for cell in row)


_NOT_STORED = "has a formula without a stored value; open the file in a spreadsheet program and save it"


def _spread(
    number: int,
    cells: dict[int, Cell],
    merged: list[tuple[int, int, int, int]],
    values: dict[tuple[int, int, int, int], Cell],
) -> None:
    """Give each cell of a merged range in row *number* the value of the range's first cell."""
    for area in merged:
        left, top, right, bottom = area
        if number == top and left in cells:
            values[area] = cells[left]
        if top <= number <= bottom and area in values:
            cells.update(dict.fromkeys(range(left, right + 1), values[area]))


def _merged_ranges(sheet: Any) -> list[tuple[int, int, int, int]]:
    """Return the merged ranges as (left, top, right, bottom); openpyxl does not read them where it reads row by row."""
    from openpyxl.utils import range_boundaries
    from openpyxl.xml.functions import iterparse

    ranges, rows = [], None
    with sheet.parent._archive.open(sheet._worksheet_path) as source:  # noqa: SLF001  # no public way leads to the sheet's XML
        for event, element in iterparse(source, ("start", "end")):
            name = element.tag.rpartition("}")[2]
            if event == "start":
                rows = element if name == "sheetData" else rows
            elif name == "row" and rows is not None:
                rows.clear()  # so that memory does not grow with the sheet
            elif name == "mergeCell":
                ranges.append(range_boundaries(element.get("ref")))
    return ranges


def _cell(cell: Any) -> Cell:
    value = cell.value
    if cell.data_type == _ERROR:
        return Cell(str(value), is_error=True)
    return Cell(_plain(value, str(cell.number_format)))


def _plain(value: Any, form: str) -> Any:
    """Return *value* as JSON data; a date that is shown without a time is a date."""
    match value:
        case bool() | str() | float():
            return value
        case int():
            return value if -(2**63) <= value < 2**64 else float(value)
        case datetime():
            return (value.date() if _is_date(value, form) else value).isoformat()
        case date() | time():
            return value.isoformat()
        case timedelta():
            minutes, seconds = divmod(round(value.total_seconds()), 60)
            return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    return str(value)


def _is_date(value: datetime, form: str) -> bool:
    from openpyxl.styles.numbers import is_datetime

    return is_datetime(form) == "date" and value.time() == time()


def text_of(value: Any) -> str:
    """Return *value* as a column's name."""
    return value if isinstance(value, str) else str(value)


def column_letter(place: int) -> str:
    """Return the letters of the column *place*, from 1: ``A``, ``Z``, ``AA``."""
    letters = ""
    while place:
        place, rest = divmod(place - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters
