"""A recorded run as a table, for ``dicast export``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from tempfile import gettempdir

import orjson

from dicast import ConfigError
from dicast.toolkit.atomic_file import AtomicFile
from dicast.toolkit.exporting import ExportCounts, ExportedRun
from dicast.toolkit.installing import how_to_install
from dicast.toolkit.media import without_content
from dicast.toolkit.run_table import RunTable

_BATCH = 1000
_ROW_GROUP = 10_000


def write_jsonl(run: ExportedRun, file: AtomicFile) -> ExportCounts:
    """Write a line for each subject: an object with the columns of ``csv/rows`` that have a value."""
    count = 0
    with _table(run) as table:
        names = table.columns()
        for row in table.rows():
            values = {name: without_content(value) for name, value in zip(names, row, strict=True) if value is not None}
            file.write(orjson.dumps(values, default=str, option=orjson.OPT_APPEND_NEWLINE))
            count += 1
    return ExportCounts(count, "rows")


def write_parquet(run: ExportedRun, file: AtomicFile) -> ExportCounts:
    """Write a row for each subject, with typed columns, as ``parquet/rows`` does.

    :raises ConfigError: if pyarrow is not installed.
    """
    if find_spec("pyarrow") is None:
        raise ConfigError(f"--to parquet needs pyarrow, which is not installed: {how_to_install('parquet')}")
    from .parquet.rows import write_table  # here, as the other format does not need it

    with _table(run) as table:
        name = str((table.started or {}).get("name"))
        write_table(_ROW_GROUP, {"run_id": run.run_id, "name": name}, file, table)
        return ExportCounts(sum(1 for _ in table.rows()), "rows")


@contextmanager
def _table(run: ExportedRun) -> Iterator[RunTable]:
    """Give the table of *run*; its rows are in a temporary file."""
    table = RunTable(Path(gettempdir()), content=run.has_content)
    try:
        events = run.events(*RunTable.wants)
        while batch := list(islice(events, _BATCH)):
            table.take(batch)
        table.end()
        yield table
    finally:
        table.close()
