"""The sink of verdicts and records: one line per subject."""

from __future__ import annotations

import csv
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import attrs
import orjson

from dicast import Event, RunContext
from dicast.toolkit.atomic_file import AtomicFile, output_path
from dicast.toolkit.media import without_content
from dicast.toolkit.run_table import RunTable

from .cells import WATCHED, check_guard, guarded

_LINES = 1000
"""Lines that are handed to the file at a time."""

_NUMBERS = frozenset({int, float, bool, type(None)})
"""The types of cells that are written as they are; None is an empty cell."""


@attrs.frozen
class Rows:
    """One line per subject, in the order they were read, as CSV that is safe to open in a spreadsheet.

    UTF-8, comma, lines ending in a line feed. The file appears under its name when the run ends, also when it is
    interrupted; until then an older one stays. A missing value is an empty cell; a list is JSON.

    :param path: the file to write; folders above it are made.
    :param overwrite: replace a file that is there; otherwise it is an error, unless the run wrote it itself before it was resumed.
    :param sanitize_formulas: put *guard* before text that a spreadsheet would take for a formula. Numbers stay as they are.
    :param guard: the character to put there, exactly one.
    :param include_metrics: write the columns ``metric_…``: one for each metric, and for each value in a record's ``metrics``.
    :param content: write what was judged, each metric's reason, and rationales that were captured; by default where the ledger
        stores what was judged.
    :param base_path: a folder that *path* must lie in, links resolved; any by default.
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

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[RowFile]:
        """Make the file's folder for *run*; paths are relative to the pipeline's folder.

        :raises ConfigError: when the file cannot be written, exists and must not be replaced, or lies outside *base_path*.
        """
        place = output_path(run.base, self.path, self.base_path)
        file = partial(AtomicFile, place, overwrite=self.overwrite or run.continued, run=run.run_id)
        file().discard()
        content = run.keeps_content if self.content is None else self.content
        table = RunTable(place.resolve().parent, metrics=self.include_metrics, content=content)
        live = RowFile(self, file, table)
        try:
            yield live
            live.close()
        finally:
            table.close()


class RowFile:
    """The rows so far, and the file they are going to be."""

    def __init__(self, options: Rows, file: Callable[[], AtomicFile], table: RunTable) -> None:
        self._guard = options.guard if options.sanitize_formulas else None
        self._watched = frozenset() if self._guard is None else WATCHED
        self._file = file
        self._table = table
        self._untold = 0
        self._ended = False

    def write(self, events: Sequence[Event]) -> int:
        """Take *events*, and return how many rows are finished with them. May be repeated after an error."""
        return self._table.take(events)

    def close(self) -> int:
        """Write the file. A run that never started leaves none; may be repeated after an error."""
        if self._ended:
            return 0
        self._untold += self._table.end()
        if self._table.started is not None:
            with self._file() as file:
                for lines in self._lines():
                    file.write(lines)
                file.commit()
        self._ended = True
        return self._untold

    def _lines(self) -> Iterable[bytes]:
        lines = _Lines()
        writer = csv.writer(lines)
        writer.writerow(self._written(self._table.columns()))
        for row in self._table.rows():
            writer.writerow(self._written(row))
            if len(lines) >= _LINES:
                yield lines.taken()
        yield lines.taken()

    def _written(self, row: Sequence[object]) -> list[object]:
        # Most cells are told by their type or their first character to need nothing, without a call.
        watched = self._watched
        return [
            cell if type(cell) in _NUMBERS or (type(cell) is str and cell[:1] not in watched) else self._cell(cell)
            for cell in row
        ]

    def _cell(self, value: object) -> object:
        value = without_content(value)
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
        return text if self._guard is None else guarded(text, self._guard)


class _Lines(list[str]):
    """What csv.writer writes to. Its line end is CR LF, which makes it quote both; the file's is LF."""

    def write(self, line: str) -> None:
        self.append(f"{line[:-2]}\n")

    def taken(self) -> bytes:
        """The lines so far, which are let go of."""
        lines = "".join(self).encode("utf-8", "backslashreplace")
        self.clear()
        return lines
