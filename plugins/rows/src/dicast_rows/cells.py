"""The cells of a sheet as JSON data: dates as text, merged ranges, formulas without a stored value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from math import isfinite
from typing import Any

import attrs

from .sheet_parts import Area, Merged, merged_ranges

_FORMULA, _ERROR = "f", "e"


class BadCell(Exception):
    """A cell whose value cannot be read; the message has the reason."""


@attrs.frozen
class Cell:
    """A cell that is not empty: its *value* as JSON data, or the *fault* that it has. *is_error* is for values such as ``#N/A``."""

    value: Any
    is_error: bool = False
    fault: str | None = None

    def checked(self, is_used: bool) -> Any:
        """Return the value.

        :raises BadCell: if the cell has a fault, or an error value in a column that *is_used* as a part of the subject.
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
    merged = Merged(merged_ranges(sheet))
    values: dict[Area, Cell] = {}
    formula_rows = iter(()) if formulas is None else formulas.iter_rows()
    number = 0
    for number, row in enumerate(sheet.iter_rows(), 1):
        cells = {cell.column: _cell(cell) for cell in row if cell.value is not None and cell.value != ""}
        for formula in next(formula_rows, ()):
            if formula.value is not None and formula.data_type == _FORMULA and formula.column not in cells:
                cells[formula.column] = Cell(None, fault=_NOT_STORED)
        _spread(number, cells, merged, values)
        yield number, cells
    for below in range(number + 1, merged.last + 1):
        cells = {}
        _spread(below, cells, merged, values)
        yield below, cells


_ESCAPED = re.compile("_x((?!D[89A-F])[0-9A-F]{4})_", re.IGNORECASE)
"""A workbook's escape of a character that XML cannot have, such as ``_x000D_``; escapes of lone surrogates are not decoded."""

_TOO_LARGE = "has a number that is larger than 1.8e308; correct it, or store it as text"
_NOT_STORED = "has a formula without a stored value; open the file in a spreadsheet program and save it"


def _spread(number: int, cells: dict[int, Cell], merged: Merged, values: dict[Area, Cell]) -> None:
    """Set each cell of a merged range in row *number* to the value of the range's first cell."""
    for area in merged.areas(number):
        left, top, right, _ = area
        if number == top and left in cells:
            values[area] = cells[left]
        if area in values:
            cells.update(dict.fromkeys(range(left, right + 1), values[area]))


def _cell(cell: Any) -> Cell:
    value = cell.value
    if cell.data_type == _ERROR:
        return Cell(str(value), is_error=True)
    try:
        return Cell(_plain(value, str(cell.number_format)))
    except OverflowError:
        return Cell(None, fault=_TOO_LARGE)


def _plain(value: Any, form: str) -> Any:
    """Return *value* as JSON data. A time whose format shows only a date becomes a date."""
    match value:
        case bool():
            return value
        case str():
            return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), value) if "_x" in value else value
        case int() | float():
            return _number(value)
        case datetime():
            return (value.date() if _is_date(value, form) else value).isoformat()
        case date() | time():
            return value.isoformat()
        case timedelta():
            minutes, seconds = divmod(round(value.total_seconds()), 60)
            return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    return str(value)


def _number(value: float) -> float:
    """Return *value* as a JSON number: an integer of at most 64 bits unchanged, any other number as a float.

    :raises OverflowError: if it is larger than any number of a workbook.
    """
    if isinstance(value, int) and -(2**63) <= value < 2**64:
        return value
    if not isfinite(number := float(value)):
        raise OverflowError
    return number


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
