"""The sink ``parquet/rows``: one row per subject."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import attrs

from dicast import ConfigError, RunContext
from dicast.toolkit.atomic_file import AtomicFile
from dicast.toolkit.installing import how_to_install
from dicast.toolkit.run_table import RunTable

from ..table_file import TableFile, open_table
from .types import PLACES, ColumnType, Type, as_text, column_types

_GROUP_CHARS = 32_000_000
"""The largest number of characters in one group of rows. Writing a group needs a few times as much memory."""


@attrs.frozen
class Rows:
    """One row per subject, in the order of reading, as a Parquet file (zstd) with typed columns. Needs ``dicast[parquet]``.

    The columns are those of ``csv/rows`` without the judged texts, reasons and rationales. A column holds booleans, whole numbers (64 bits), floats or text; ``cost_usd`` holds decimals.
    A column whose values differ in type holds text; lists and mappings are JSON, and a missing value is null. The file's key-value metadata has ``run_id``, ``name``,
    ``fingerprints`` as JSON and, if a task states them, ``security_level`` and ``determinism_level``. The file appears under its name when the run ends, also
    when the run is interrupted; until then an older file stays.

    :param path: the file to write. Missing folders are made.
    :param overwrite: replace an existing file. If false, an existing file is an error, unless this run wrote it before it was resumed.
    :param include_metrics: write the columns ``metric_…``.
    :param row_group: the largest number of rows in one group of the file. A group with much text has fewer rows.
    :param base_path: a folder that must contain *path*, links resolved; any folder by default.
    """

    name = "rows"
    wants = RunTable.wants
    rewrites = True

    path: Path = attrs.field(converter=Path)
    overwrite: bool = True
    include_metrics: bool = True
    row_group: int = attrs.field(default=10_000, validator=attrs.validators.ge(1))
    base_path: Path | None = attrs.field(default=None, converter=attrs.converters.optional(Path))

    def __attrs_post_init__(self) -> None:
        if find_spec("pyarrow") is None:
            raise ConfigError(f"parquet/rows needs pyarrow, which is not installed: {how_to_install('parquet')}")

    def open(self, run: RunContext) -> AbstractAsyncContextManager[TableFile]:
        """Return the live sink for *run*; see :func:`~dicast_tables.table_file.open_table`."""
        metadata = {"run_id": run.run_id, "name": run.name}
        return open_table(self, run, partial(write_table, self.row_group, metadata))


def write_table(row_group: int, metadata: Mapping[str, str], file: AtomicFile, table: RunTable) -> None:
    """Write all rows of *table* to *file*, with *metadata* and that of the run, in groups of at most *row_group* rows."""
    from pyarrow import parquet  # type: ignore[import-untyped]  # here, because it is 140 MB that only the end of such a run needs

    names = table.columns()
    types = column_types(names, table.rows())
    schema = _schema(names, types, {**metadata, **_run_metadata(table.started or {})})
    with parquet.ParquetWriter(_WritableFile(file), schema, compression="zstd") as writer:
        for group in _groups(table, row_group):
            writer.write_table(_arrow_table(schema, types, group))


def _groups(table: RunTable, row_group: int) -> Iterator[list[list[object]]]:
    group: list[list[object]] = []
    chars = 0
    for row in table.rows():
        group.append(row)
        chars += sum(len(cell) for cell in row if isinstance(cell, str))
        if len(group) >= row_group or chars >= _GROUP_CHARS:
            yield group
            group, chars = [], 0
    if group:
        yield group


class _WritableFile:
    """An :class:`~dicast.toolkit.atomic_file.AtomicFile` with the methods that pyarrow calls."""

    closed = False

    def __init__(self, file: AtomicFile) -> None:
        self._file = file
        self._size = 0

    def write(self, data: bytes) -> int:
        self._file.write(data)
        self._size += len(data)
        return len(data)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """Do nothing: the file is flushed when it is committed."""

    def close(self) -> None:
        """Do nothing: the file is closed when it is committed."""


def _run_metadata(started: Mapping[str, Any]) -> dict[str, str]:
    levels = {name: as_text(started[name]) for name in ("security_level", "determinism_level") if started.get(name)}
    return {"fingerprints": json.dumps(started.get("fingerprints", {}), sort_keys=True), **levels}


def _schema(names: Sequence[str], types: Sequence[ColumnType], metadata: Mapping[str, str]) -> Any:
    import pyarrow as pa  # here, because it is 140 MB that only the end of such a run needs

    arrow_types: dict[Type, Any] = {
        "bool": pa.bool_(),
        "int": pa.int64(),
        "float": pa.float64(),
        "decimal": pa.decimal128(38, PLACES),
    }
    fields = [
        pa.field(as_text(name), arrow_types.get(column.type, pa.string()))
        for name, column in zip(names, types, strict=True)
    ]
    return pa.schema(fields, metadata={name: as_text(value) for name, value in metadata.items()})


def _arrow_table(schema: Any, types: Sequence[ColumnType], rows: Sequence[Sequence[object]]) -> Any:
    import pyarrow as pa  # here, because it is 140 MB that only the end of such a run needs

    columns = zip(*rows, strict=True)
    arrays = [
        pa.array(column.cells(values), field.type) for column, values, field in zip(types, columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
