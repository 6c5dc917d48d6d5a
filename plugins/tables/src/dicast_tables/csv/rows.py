"""The sink ``csv/rows``: one line per subject."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import attrs
import orjson

from dicast import RunContext
from dicast.toolkit.atomic_file import AtomicFile
from dicast.toolkit.media import without_content
from dicast.toolkit.run_table import RunTable

from ..table_file import TableFile, open_table
from .cells import GUARDED_STARTS, add_guard, check_guard

_LINES = 1000
"""The number of lines that are written to the file at a time."""

_NUMBERS = frozenset({int, float, bool, type(None)})
"""The types of cells that are written unchanged. None is an empty cell."""


@attrs.frozen
class Rows:
    """One line per subject, in the order of reading, as CSV that is safe to open in a spreadsheet.

    The file is UTF-8 with commas and line feeds. It appears under its name when the run ends, also when the run is
    interrupted; until then an older file stays. A missing value is an empty cell; a list is JSON.

    :param path: the file to write. Missing folders are made.
    :param overwrite: replace an existing file. If false, an existing file is an error, unless this run wrote it before it was resumed.
    :param sanitize_formulas: put *guard* before text that a spreadsheet would read as a formula. Numbers are unchanged.
    :param guard: the guard character, exactly one.
    :param include_metrics: write the columns ``metric_…``: one for each metric, and one for each value in a record's ``metrics``.
    :param content: write the judged texts, each metric's reason and the captured rationales. By default they are written if the ledger
        stores the judged texts.
    :param base_path: a folder that must contain *path*, links resolved; any folder by default.
    """

    name = "rows"
    wants = RunTable.wants
    rewrites = True

    path: Path = attrs.field(converter=Path)
    overwrite: bool = True
    sanitize_formulas: bool = True
    guard: str = attrs.field(default="'", validator=check_guard)
    include_metrics: bool = True
    content: bool | None = None
    base_path: Path | None = attrs.field(default=None, converter=attrs.converters.optional(Path))

    def open(self, run: RunContext) -> AbstractAsyncContextManager[TableFile]:
        """Return the live sink for *run*; see :func:`~dicast_tables.table_file.open_table`."""
        content = run.keeps_content if self.content is None else self.content
        guard = self.guard if self.sanitize_formulas else None
        return open_table(self, run, partial(_write_table, guard), content=content)


def _write_table(guard: str | None, file: AtomicFile, table: RunTable) -> None:
    for lines in _blocks(guard, table):
        file.write(lines)


def _blocks(guard: str | None, table: RunTable) -> Iterator[bytes]:
    """Yield the header and all rows of *table*, ``_LINES`` lines at a time."""
    lines = _Lines()
    writer = csv.writer(lines)
    writer.writerow(_cells(table.columns(), guard))
    for row in table.rows():
        writer.writerow(_cells(row, guard))
        if len(lines) >= _LINES:
            yield lines.flush()
    yield lines.flush()


def _cells(row: Sequence[object], guard: str | None) -> list[object]:
    # Most cells need no call: their type or their first character shows that they are written unchanged.
    starts: frozenset[str] = frozenset() if guard is None else GUARDED_STARTS
    return [
        cell if type(cell) in _NUMBERS or (type(cell) is str and cell[:1] not in starts) else _cell(cell, guard)
        for cell in row
    ]


def _cell(value: object, guard: str | None) -> str:
    value = without_content(value)
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text if guard is None else add_guard(text, guard)


class _Lines(list[str]):
    """The target of ``csv.writer``. The writer ends lines with CR LF, so that it quotes both; the file has LF."""

    def write(self, line: str) -> None:
        self.append(f"{line[:-2]}\n")

    def flush(self) -> bytes:
        """Return the collected lines and forget them."""
        lines = "".join(self).encode("utf-8", "backslashreplace")
        self.clear()
        return lines
