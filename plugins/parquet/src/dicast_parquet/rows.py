"""The sink of verdicts and records: one row per subject."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from dicast import Event, RunContext
from dicast.toolkit.atomic_file import AtomicFile, output_path
from dicast.toolkit.run_table import RunTable

from .types import PLACES, ColumnType, Type, as_text, column_types

_GROUP_CHARS = 32_000_000
"""Text in one group of rows, in characters: what is in memory at the end is a few times that."""


@attrs.frozen
class Rows:
    """One row per subject, in the order they were read, as a Parquet file (zstd) with typed columns.

    The columns are those of ``csv/rows`` without what was judged, reasons and rationales. A column holds booleans, whole numbers (64 bits), floats or text; ``cost_usd`` holds decimals.
    Where its values differ in type it holds text, lists and mappings are JSON, and what is missing is null. The file's key-value metadata has ``run_id``, ``name``,
    ``fingerprints`` as JSON and, where a task says them, ``security_level`` and ``determinism_level``. It appears under its name when the run ends, also
    when that is interrupted; until then an older one stays.

    :param path: the file to write; folders above it are made.
    :param overwrite: replace a file that is there; otherwise it is an error, unless the run wrote it itself before it was resumed.
    :param include_metrics: write the columns ``metric_…``.
    :param row_group: rows in one group of the file, at most; there are fewer where they hold much text.
    :param base_path: a folder that *path* must lie in, links resolved; any by default.
    """

    name = "rows"
    wants = RunTable.wants
    rewrites = True

    path: Path = attrs.field(converter=Path)
    overwrite: bool = True
    include_metrics: bool = True
    row_group: int = attrs.field(default=10_000, validator=attrs.validators.ge(1))
    base_path: Path | None = attrs.field(default=None, converter=attrs.converters.optional(Path))

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[RowFile]:
        """Make the file's folder for *run*; paths are relative to the pipeline's folder.

        :raises ConfigError: when the file cannot be written, exists and must not be replaced, or lies outside *base_path*.
        """
        place = output_path(run.base, self.path, self.base_path)
        file = partial(AtomicFile, place, overwrite=self.overwrite or run.continued, run=run.run_id)
        file().discard()
        table = RunTable(place.resolve().parent, metrics=self.include_metrics)
        live = RowFile(self, file, table, {"run_id": run.run_id, "name": run.name})
        try:
            yield live
            live.close()
        finally:
            table.close()


class RowFile:
    """The rows so far, and the file they are going to be."""

    def __init__(
        self, options: Rows, file: Callable[[], AtomicFile], table: RunTable, metadata: Mapping[str, str]
    ) -> None:
        self._options, self._file, self._table, self._metadata = options, file, table, metadata
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
                self._write(file, self._table.started)
                file.commit()
        self._ended = True
        return self._untold

    def _write(self, file: AtomicFile, started: Mapping[str, Any]) -> None:
        from pyarrow import parquet  # type: ignore[import-untyped]  # here, because it is 140 MB that only the end of such a run needs

        names = self._table.columns()
        types = column_types(names, self._table.rows())
        schema = _schema(names, types, {**self._metadata, **_of_the_run(started)})
        with parquet.ParquetWriter(_Appending(file), schema, compression="zstd") as writer:
            for group in self._groups():
                writer.write_table(_table(schema, types, group))

    def _groups(self) -> Iterator[list[list[object]]]:
        group: list[list[object]] = []
        chars = 0
        for row in self._table.rows():
            group.append(row)
            chars += sum(len(cell) for cell in row if isinstance(cell, str))
            if len(group) >= self._options.row_group or chars >= _GROUP_CHARS:
                yield group
                group, chars = [], 0
        if group:
            yield group


class _Appending:
    """An :class:`~dicast.toolkit.atomic_file.AtomicFile` as pyarrow writes to it."""

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
        """The file is flushed when it is committed."""

    def close(self) -> None:
        """The file is closed when it is committed."""


def _of_the_run(started: Mapping[str, Any]) -> dict[str, str]:
    found = {name: as_text(started[name]) for name in ("security_level", "determinism_level") if started.get(name)}
    return {"fingerprints": json.dumps(started.get("fingerprints", {}), sort_keys=True), **found}


def _schema(names: Sequence[str], types: Sequence[ColumnType], metadata: Mapping[str, str]) -> Any:
    import pyarrow as pa  # here, because it is 140 MB that only the end of such a run needs

    of: dict[Type, Any] = {
        "bool": pa.bool_(),
        "int": pa.int64(),
        "float": pa.float64(),
        "decimal": pa.decimal128(38, PLACES),
    }
    fields = [
        pa.field(as_text(name), of.get(column.type, pa.string())) for name, column in zip(names, types, strict=True)
    ]
    return pa.schema(fields, metadata={name: as_text(value) for name, value in metadata.items()})


def _table(schema: Any, types: Sequence[ColumnType], rows: Sequence[Sequence[object]]) -> Any:
    import pyarrow as pa  # here, because it is 140 MB that only the end of such a run needs

    columns = zip(*rows, strict=True)
    arrays = [
        pa.array(column.cells(values), field.type) for column, values, field in zip(types, columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
