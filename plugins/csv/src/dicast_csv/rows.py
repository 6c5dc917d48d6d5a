"""The sink of verdicts: one line per subject."""

from __future__ import annotations

import csv
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import takewhile
from pathlib import Path

import attrs

from dicast import AtomicFile, ConfigError, DicastError, Event, RunContext

from .cells import WATCHED, Cell, check_guard, guarded
from .table import Row, Table

Key = tuple[str | None, str | None]


@attrs.frozen
class Rows:
    """One line per subject, in the order they were read, as CSV that is safe to open in a spreadsheet.

    UTF-8, comma, lines ending in a line feed. The file appears under its name when the run ends, also when it is
    interrupted; until then an older one stays. A missing value is an empty cell.

    :param path: the file to write; folders above it are made.
    :param overwrite: replace a file that is there; otherwise it is an error.
    :param sanitize_formulas: put *guard* before text that a spreadsheet would take for a formula. Numbers stay as they are.
    :param guard: the character to put there, exactly one.
    :param include_metrics: write a column ``metric_<label>`` for each metric.
    :param base_path: a folder that *path* must lie in, links resolved; any by default.
    """

    name = "rows"
    wants = ("run.started", "subject.read", "eval.completed", "eval.failed")
    rewrites = True

    path: Path = attrs.field(converter=Path)
    overwrite: bool = True
    sanitize_formulas: bool = True
    guard: str = attrs.field(default="'", validator=check_guard)
    include_metrics: bool = True
    base_path: Path | None = attrs.field(default=None, converter=attrs.converters.optional(Path))

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[RowFile]:
        """Open the file for *run*; paths are relative to the pipeline's folder.

        :raises ConfigError: when it cannot be written, exists and must not be replaced, or lies outside *base_path*.
        """
        with AtomicFile(self._place(run.base), overwrite=self.overwrite) as file:
            guard = self.guard if self.sanitize_formulas else None
            live = RowFile(file, guard, include_metrics=self.include_metrics)
            try:
                yield live
            finally:
                live.close()

    def _place(self, folder: Path) -> Path:
        path = folder / self.path
        if self.base_path is not None and not path.resolve().is_relative_to((folder / self.base_path).resolve()):
            raise ConfigError(f"path {str(self.path)!r} leads out of base_path {str(self.base_path)!r}")
        return path


class RowFile:
    """The open file. It holds the rows of subjects that were read and are not yet known to be finished."""

    def __init__(self, file: AtomicFile, guard: str | None, *, include_metrics: bool) -> None:
        self._file = file
        self._guard = guard
        self._include_metrics = include_metrics
        self._table: Table | None = None
        self._rows: dict[Key, Row] = {}
        self._newest: Key | None = None
        self._ended = False

    def write(self, events: Sequence[Event]) -> int:
        """Take *events*, write the rows that are finished, and return their number. May be repeated after an error.

        Terminal events come in the order in which the subjects were read: one for a later subject finishes the earlier.
        """
        for event in events:
            if event.type == "run.started":
                self._start(event)
            else:
                self._note(event)
        return 0 if self._newest is None else self._write(list(takewhile(self._newest.__ne__, self._rows)))

    def close(self) -> int:
        """Write the rows that are left, and give the file its name. A run that never started leaves no file."""
        if self._ended:
            return 0
        written = self._write(list(self._rows))
        if self._table is not None:
            self._file.commit()
        self._ended = True
        return written

    def _start(self, event: Event) -> None:
        if self._table is None:
            table = Table.of(event.payload, include_metrics=self._include_metrics)
            self._file.write(self._lines([table.header()]))
            self._table = table

    def _note(self, event: Event) -> None:
        key = event.subject_kind, event.subject_id
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = Row(*key, event.session_id)
        if event.type != "subject.read":
            row.ended[str(event.payload["judge"])] = event.payload
            self._newest = key

    def _write(self, keys: list[Key]) -> int:
        if not keys:
            return 0
        if self._table is None:
            raise DicastError("csv/rows was told of subjects before run.started, which names its columns")
        # The rows are forgotten only when they are written, so that the kernel may try again.
        self._file.write(self._lines([self._table.cells(self._rows[key]) for key in keys]))
        for key in keys:
            del self._rows[key]
        return len(keys)

    def _lines(self, rows: Iterable[Sequence[Cell]]) -> bytes:
        lines = _Lines()
        csv.writer(lines).writerows(rows if self._guard is None else map(self._guarded, rows))
        return "".join(lines).encode("utf-8", "backslashreplace")

    def _guarded(self, row: Sequence[Cell]) -> list[Cell]:
        guard = self._guard or ""
        # Most cells are told to be harmless by their first character, without a call.
        return [guarded(cell, guard) if isinstance(cell, str) and cell[:1] in WATCHED else cell for cell in row]


class _Lines(list[str]):
    """What csv.writer writes to. Its line end is CR LF, which makes it quote both; the file's is LF."""

    def write(self, line: str) -> None:
        self.append(f"{line[:-2]}\n")
