"""Code shared by ``csv/rows`` and ``parquet/rows``: a table that is written when the run ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

from dicast import Event, RunContext
from dicast.toolkit.atomic_file import AtomicFile, output_path
from dicast.toolkit.run_table import RunTable

WriteTable = Callable[[AtomicFile, RunTable], None]
"""Function that writes all rows of a table to a file, without a commit."""


class TableOptions(Protocol):
    """The options that every sink of a table has."""

    @property
    def path(self) -> Path:
        """The file to write."""
        ...

    @property
    def overwrite(self) -> bool:
        """True if an existing file may be replaced."""
        ...

    @property
    def include_metrics(self) -> bool:
        """True if the columns ``metric_…`` are written."""
        ...

    @property
    def base_path(self) -> Path | None:
        """The folder that *path* must lie in."""
        ...


@asynccontextmanager
async def open_table(
    options: TableOptions, run: RunContext, write: WriteTable, *, content: bool = False
) -> AsyncIterator[TableFile]:
    """Check the path, make its folder, and yield the live sink of *run*. Paths are relative to the pipeline's folder.

    :param content: whether the table has columns for the judged texts, reasons and rationales.
    :raises ConfigError: if the file cannot be written, exists and must not be replaced, or lies outside *base_path*.
    """
    path = output_path(run.base, options.path, options.base_path)
    new_file = partial(AtomicFile, path, overwrite=options.overwrite or run.continued, run=run.run_id)
    new_file().discard()
    table = RunTable(path.resolve().parent, metrics=options.include_metrics, content=content)
    file = TableFile(new_file, table, write)
    try:
        yield file
        file.close()
    finally:
        table.close()


class TableFile:
    """Live sink that collects the rows of a run and writes them to one file at its end."""

    def __init__(self, new_file: Callable[[], AtomicFile], table: RunTable, write: WriteTable) -> None:
        self._new_file = new_file
        self._table = table
        self._write = write
        self._unreported = 0
        self._is_closed = False

    def write(self, events: Sequence[Event]) -> int:
        """Add *events* to the table, and return the number of rows that they complete. May be repeated after an error."""
        return self._table.take(events)

    def close(self) -> int:
        """Write the file, and return the number of rows that were not reported yet. May be repeated after an error.

        A run that never started leaves no file.
        """
        if self._is_closed:
            return 0
        self._unreported += self._table.end()
        if self._table.started is not None:
            with self._new_file() as file:
                self._write(file, self._table)
                file.commit()
        self._is_closed = True
        return self._unreported
