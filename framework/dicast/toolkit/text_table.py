"""Tables for a reader: the data, which a terminal may draw, and its plain lines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal

from .._kernel.classes import frozen
from .decimals import decimal_text
from .printable import column_count, first_columns, one_line, short_name

WIDTH = 80
"""The width of a plain line in columns."""

MOST = 36
"""The most characters of a text in a cell."""

_BETWEEN = "  "


@frozen
class TextTable:
    """A table for a reader: the heads of its *columns*, and *rows* of texts, numbers and None for missing values.

    Columns of numbers, and the columns *right*, are right-aligned. The columns *uncut* are never cut.

    :param least: the fewest characters that remain of a text when texts are cut so that all columns fit.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    right: Collection[str] = ()
    uncut: Collection[str] = ()
    least: int = 20

    def cells(self) -> list[list[str]]:
        """Return the rows as texts of one line, uncut."""
        return [[cell_text(cell) for cell in row] for row in self.rows]

    def on_the_right(self, column: int) -> bool:
        """Return True if the column of this number is right-aligned."""
        values = [row[column] for row in self.rows if row[column] is not None]
        return self.columns[column] in self.right or (bool(values) and all(map(_is_number, values)))

    def lines(self, width: int = WIDTH) -> Iterator[str]:
        """Return the table as plain lines of at most *width* characters, if possible.

        Texts are cut first. Columns that still do not fit are in further blocks below, each with the first column again.
        """
        heads, cells = [one_line(name) for name in self.columns], self.cells()
        widths = self._widths([heads, *cells], width)
        right = [self.on_the_right(column) for column in range(len(heads))]
        for number, block in enumerate(_blocks(widths, width)):
            if number:
                yield ""
            for row in (heads, *cells):
                placed = (_placed(row[column], widths[column], right=right[column]) for column in block)
                yield _BETWEEN.join(placed).rstrip()

    def _widths(self, rows: Sequence[Sequence[str]], width: int) -> list[int]:
        """Return the widths of the columns. The widest texts are cut until all columns fit; if this would cut below *least*, no text below :data:`MOST`."""
        widths = [max(map(column_count, column)) for column in zip(*rows, strict=True)]
        texts = [at for at, name in enumerate(self.columns) if name not in self.uncut and not self.on_the_right(at)]
        for column in texts:
            most = min(MOST, (width - len(_BETWEEN)) // 2)  # so that any column fits next to the first
            widths[column] = min(widths[column], max(most, column_count(rows[0][column])))
        cut = list(widths)
        while (over := sum(cut) + len(_BETWEEN) * (len(cut) - 1) - width) > 0:
            widest = max(texts, key=cut.__getitem__, default=None)
            if widest is None or cut[widest] <= self.least:
                return widths
            second = max((cut[place] for place in texts if place != widest), default=0)
            cut[widest] = max(self.least, cut[widest] - over, min(second, cut[widest] - 1))
        return cut


def cell_text(cell: object) -> str:
    """Return one cell as a text of one line: ``-`` for None, four decimals for a number that is not an integer."""
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return decimal_text(cell, 4)
    if isinstance(cell, int) and not isinstance(cell, bool):
        return f"{cell:,}"
    return one_line(f"{cell:f}" if isinstance(cell, Decimal) else str(cell))


def _is_number(cell: object) -> bool:
    return isinstance(cell, int | float | Decimal) and not isinstance(cell, bool)


def _blocks(widths: Sequence[int], width: int) -> Iterator[list[int]]:
    """Yield groups of columns that fit next to each other; the first column is in all of them."""
    block, room = [0], width - widths[0]
    for column in range(1, len(widths)):
        needed = len(_BETWEEN) + widths[column]
        if needed > room and len(block) > 1:
            yield block
            block, room = [0], width - widths[0]
        block.append(column)
        room -= needed
    yield block


def _placed(text: str, width: int, *, right: bool) -> str:
    if column_count(text) > width:
        text = f"{first_columns(text, width - 1)}…" if " " in text else short_name(text, width)
    blanks = " " * (width - column_count(text))
    return blanks + text if right else text + blanks
