"""The source ``rows/parquet``: the rows of a columnar file."""

from __future__ import annotations

import importlib.util
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import date, datetime, time
from decimal import Decimal
from itertools import chain
from math import inf, isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs

from dicast import ConfigError, DataError, InputPath, Problem, Within
from dicast.toolkit.file_source import check_source, each_subject, open_source
from dicast.toolkit.files import error_reason, open_file
from dicast.toolkit.input_file import InputCheck, InputFile
from dicast.toolkit.installing import how_to_install
from dicast.toolkit.scan import Scan

from .fields import Fields, check_fields, media_columns
from .rows import Failures, Items, Numbered, Rows, chunks
from .unknown import Marker, Unknown

GZIP = b"\x1f\x8b"
_LONGEST = 40
"""The number of characters of an unknown value that are shown."""


@attrs.frozen
class Parquet:
    """Rows from a Parquet file, read in batches: each row becomes a subject. Needs pyarrow, from the extra ``parquet``.

    Dates and times become texts in ISO 8601, decimals become texts; bytes, NaN and infinity are errors.

    :param path: the file. gzip is recognized; ``-`` is standard input.
    :param fields: the column of each part of a row, as for ``rows/jsonl``: dotted paths. Every row must have a path that is named here, except
        ``error``. An ``id`` may be a template over several columns, ``"{{ question }}-{{ model }}"``;
        ``{{ line }}`` in it is the row's number. Without an ``id`` a row is named by its number, counted from 1.
    :param kind: the subject kind of the rows.
    :param strip_reasoning: leave each ``<think>…</think>`` out of an output that is a text. The column keeps it under its name.
    :param batch_rows: the number of rows in a batch, 1,000 by default. Memory holds a batch, and the part of its row group that pyarrow holds.
    :param unknown: ``error`` refuses bytes, NaN, infinity and values of other types, which cannot be recorded. ``mark`` puts markers in their
        place (``[image/png, 48 kB]``), which the run counts.
    :param scan: secrets and personal data in the input: ``warn`` counts them, ``mask`` replaces them by markers such as ``[masked: aws-key]``
        before anything is stored or sent, ``off`` does not look for them.
    """

    path: InputPath
    fields: Fields = attrs.field(factory=dict)
    kind: str = "row"
    batch_rows: int = attrs.field(default=1000, validator=Within(1, inf, "1 or more"))
    unknown: Unknown = attrs.field(default="error", metadata={"later": True})
    strip_reasoning: bool = attrs.field(default=False, metadata={"later": True})
    scan: Scan = attrs.field(default="warn", metadata={"later": True})

    open, check, subjects = open_source, check_source, each_subject

    def __attrs_post_init__(self) -> None:
        check_fields(self.fields)
        if importlib.util.find_spec("pyarrow") is None:
            raise ConfigError(f"rows/parquet needs pyarrow, which is not installed: {how_to_install('parquet')}")

    @property
    def kinds(self) -> tuple[str, ...]:
        """The subject kinds this source yields."""
        return (self.kind,)

    @contextmanager
    def reading(self) -> Iterator[Rows]:
        """Open the input and yield the live source."""
        with InputFile.opened(self.path) as file, ExitStack() as stack:
            items = Items(file, "row", Marker.of(self.unknown))
            raw = {column.column.partition(".")[0] for column in media_columns(self.fields).values()}
            batches = _Batches(file, self.batch_rows, items, stack, frozenset(raw))
            yield items.rows(self, batches.rows)


@attrs.define
class _Batches:
    """Reader of a Parquet file. Faults of rows go to *items*. *plain* is the path of its bytes without gzip.

    The columns *raw* may hold bytes, which are the content of media.
    """

    file: InputFile
    size: int
    items: Items
    stack: ExitStack
    raw: frozenset[str] = frozenset()
    plain: Path | None = None

    def rows(self, check: InputCheck | None, failures: Failures) -> Numbered:
        """Yield each row with its number; faults go to *check*, or are raised."""
        import pyarrow as pa  # type: ignore[import-untyped]  # 40 MB, which only this source needs
        from pyarrow import parquet

        plain = self._unpacked(check)
        try:
            with parquet.ParquetFile(plain) as table:
                twice = [name for name, times in Counter(table.schema_arrow.names).items() if times > 1]
                if twice:
                    self.items.fault(f"the file has the column {twice[0]!r} twice", 0, check)
                else:
                    yield from self._rows(table, check)
        except (pa.ArrowException, OSError, ValueError) as error:
            self.items.fault(f"the file cannot be read as Parquet: {error_reason(error)}", 0, check)

    def _rows(self, table: Any, check: InputCheck | None) -> Numbered:
        number = 0
        for batch in table.iter_batches(self.size):
            for row in batch.to_pylist(maps_as_pydicts="strict"):
                number += 1
                try:
                    row_values = {
                        name: value if name in self.raw else _plain(value, name, self.items.marker)
                        for name, value in row.items()
                    }
                except DataError as error:
                    self.items.fault(error, number, check)
                else:
                    yield number, row_values

    def _unpacked(self, check: InputCheck | None) -> Path:
        """Return the path of the file's bytes without gzip; *check* digests them."""
        if check is None and self.plain is not None:
            return self.plain
        pieces = chunks(self.file, lambda what: self.items.fault(what, 0, check), check)
        first = next(pieces, b"")
        with open_file(self.file.path) as file:
            packed = file.read(len(GZIP)) == GZIP
        self.plain = self.file.path
        if packed:
            self.plain = Path(self.stack.enter_context(TemporaryDirectory(prefix="dicast-")), "rows.parquet")
            with self.plain.open("wb") as copy:
                copy.writelines(chain((first,), pieces))
        else:
            deque(pieces, maxlen=0)
        return self.plain


def _plain(value: Any, path: str, marker: Marker) -> Any:
    """Return *value*, which is at *path* in the row, as JSON data.

    :raises DataError: (without a file) if it has no form in JSON.
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float() if isfinite(value):
            return value
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal():
            return str(value)
        case dict():
            return {str(name): _plain(item, f"{path}.{name}", marker) for name, item in value.items()}
        case list():
            return [_plain(item, f"{path}.{place}", marker) for place, item in enumerate(value)]
    if marker.is_on:
        if isinstance(value, bytes):
            return marker.data(value)
        kind = "not finite" if isinstance(value, float) else type(value).__name__
        return marker.mark(kind, str(value) if isinstance(value, float) else f"unknown value {str(value)[:_LONGEST]!r}")
    what = f"is {value}" if isinstance(value, float) else f"holds {type(value).__name__}"
    wrong = f"the column {path!r} {what}, which JSON does not have; write the file with null, a text, or without it"
    raise DataError(Problem(wrong, path=path))
