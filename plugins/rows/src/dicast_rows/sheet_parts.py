"""The parts of a workbook's archive: their sizes, the places of rows and cells in a sheet, and its merged ranges."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from zipfile import ZipInfo

Area = tuple[int, int, int, int]
"""A range of cells: left column, top row, right column, bottom row, each from 1."""

MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384
"""The size of a sheet in Excel."""

MOST_MERGED = 1_000_000
"""The largest number of cells in the merged ranges of a sheet."""

_MOST_BYTES, _MOST_RATIO = 64 * 2**20, 200
"""Size of an unpacked part, and compression ratio: a part that exceeds both is refused, because it would fill the memory."""

_VALUES = ("v", "t")
"""The elements of a cell that have its value: as a number or an index, or as text."""

_PLACE = re.compile(r"\$?([A-Z]{1,3})\$?([0-9]{1,7})", re.ASCII)


class BadSheet(Exception):
    """A sheet that cannot be read without loss; the message has the reason."""


class Merged:
    """The merged ranges of a sheet, for rows that are requested in order."""

    def __init__(self, areas: Iterable[Area]) -> None:
        self._later = sorted(areas, key=lambda area: area[1], reverse=True)
        self._now: list[Area] = []
        self.last = max((bottom for *_, bottom in self._later), default=0)

    def areas(self, number: int) -> Sequence[Area]:
        """Return the ranges that contain cells of row *number*."""
        if self._now:
            self._now = [area for area in self._now if area[3] >= number]
        while self._later and self._later[-1][1] <= number:
            self._now.append(self._later.pop())
        return self._now


def check_sizes(parts: Iterable[ZipInfo]) -> None:
    """Check that the parts of a workbook do not unpack to much more than their size.

    :raises BadSheet: naming the part that does.
    """
    for part in parts:
        if part.file_size > max(_MOST_BYTES, _MOST_RATIO * part.compress_size):
            size = f"{part.file_size:,} bytes from {part.compress_size:,}"
            raise BadSheet(f"its part {part.filename!r} unpacks to {size}, as in no workbook; save the file anew")


def merged_ranges(sheet: Any) -> list[Area]:
    """Return the merged ranges of the openpyxl *sheet*, which openpyxl does not read in its reading by rows.

    :raises BadSheet: if rows or cells are out of order, or beyond the size of a sheet: openpyxl would leave them out.
    """
    ranges: list[Area] = []
    places, cells = _Places(), 0
    for name, element, has_ended in _elements(sheet):
        if name == "row" and not has_ended:
            places.start_row(element.get("r"))
        elif name == "c" and not has_ended:
            places.add(element.get("r"))
        elif name == "mergeCell" and has_ended:
            area = _area(element.get("ref"))
            cells += (area[2] - area[0] + 1) * (area[3] - area[1] + 1)
            if cells > MOST_MERGED:
                raise BadSheet(f"its merged ranges have more than {MOST_MERGED:,} cells; take them apart")
            ranges.append(area)
    return ranges


def has_values(sheet: Any) -> bool:
    """Return whether a cell of the openpyxl *sheet* has a value."""
    return any(has_ended and name in _VALUES and element.text for name, element, has_ended in _elements(sheet))


class _Places:
    """The places of the rows and cells of a sheet, which have to come in their order."""

    def __init__(self) -> None:
        self._row = self._column = 0

    def start_row(self, number: str | None) -> None:
        """Start a row, which may have a *number*."""
        row = self._row + 1 if number is None else _integer(number, "row")
        if not self._row < row <= MOST_ROWS:
            raise BadSheet(f"row {row} comes after row {self._row}; rows are in their order, up to {MOST_ROWS:,}")
        self._row, self._column = row, 0

    def add(self, place: str | None) -> None:
        """Add a cell of the row, which may have a *place* such as ``B2``."""
        column, row = (self._column + 1, self._row) if place is None else _place(place)
        if row != self._row or not self._column < column <= MOST_COLUMNS:
            name = place or f"{column} of row {row}"
            raise BadSheet(f"cell {name} is out of order, in another row or beyond column XFD; save the file anew")
        self._column = column


def _elements(sheet: Any) -> Iterator[tuple[str, Any, bool]]:
    """Yield the elements of the sheet's XML by name, when they start and when they have ended."""
    from openpyxl.xml.functions import iterparse

    rows = None
    with sheet.parent._archive.open(sheet._worksheet_path) as source:  # noqa: SLF001  # no public way leads to the sheet's XML
        for event, element in iterparse(source, ("start", "end")):
            name = element.tag.rpartition("}")[2]
            if event == "start" and name == "sheetData":
                rows = element
            yield name, element, event == "end"
            if event == "end" and name == "row" and rows is not None:
                rows.clear()  # so that memory does not grow with the sheet


def _area(reference: str | None) -> Area:
    first, _, last = (reference or "").partition(":")
    (left, top), (right, bottom) = _place(first), _place(last or first)
    if not (left <= right <= MOST_COLUMNS and top <= bottom <= MOST_ROWS):
        raise BadSheet(f"{reference!r:.100} is not a merged range")
    return left, top, right, bottom


def _place(text: str) -> tuple[int, int]:
    match = _PLACE.fullmatch(text)
    if match is None:
        raise BadSheet(f"{text!r:.100} is not the place of a cell")
    column = 0
    for letter in match[1]:
        column = column * 26 + ord(letter) - ord("A") + 1
    return column, int(match[2])


def _integer(text: str, noun: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text, re.ASCII):
        raise BadSheet(f"{text!r:.100} is not the number of a {noun}")
    return int(text)
