"""Segments: the events of many commits as one Parquet file, ``segments/COMMIT-EVENT.parquet``.

The numbers in the name are those of its first commit and of its first event. Both follow from the segments before it, so two processes that seal the same
commits write the same name, and only one of them succeeds. The columns are the values of the lines, so each line and its digest follow from a row. The
metadata has the digests before and after the segment, and the state of the ledger at its end.

From format 2 on, the first row of each group of rows has the columns of the group for readers of many verdicts, see :mod:`dicast.reading.blocks`. They follow from the rows. In a
segment of format 1 they are made from the rows.
"""

from __future__ import annotations

import base64
import re
import struct
import zlib
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import attrs
import orjson

from dicast import LedgerError
from dicast.toolkit.ledger_lines.chain import MARK_BYTES, chain_of

from .commits import Commit
from .groups import Group, checked_table, rows_of
from .lines import Row
from .state import State

if TYPE_CHECKING:
    from dicast.reading.blocks.stored_columns import Stored

SEGMENTS = "segments"
_NAME = re.compile(r"(\d{12})-(\d{15})\.parquet")
_HEADER, _STATE = b"dicast.segment", b"dicast.state"
WRITER_DIGITS = 16
"""The characters that tell writers of a commit apart."""

_GROUP_ROWS = 8_192
_LEVEL = 3
"""Level of zstd."""

VALUES = ("id", "type", "time", "run_id", "session_id", "turn_id", "subject_kind", "subject_id", "sensitivity")
_COLUMNS = ("seq", *VALUES, "payload", "content_digest", "content_at", "content", "mark")
_PACKED = "columns"
"""Column with the columns of a group in its first row."""

_FORMAT = 2
_FIRST_KINDS = dict.fromkeys(_COLUMNS, "string") | {"seq": "int64", "mark": "int32"}
_KINDS = {1: _FIRST_KINDS, _FORMAT: _FIRST_KINDS | {_PACKED: "binary"}}
"""Types of the columns of each format."""


@attrs.frozen
class Place:
    """Place of a segment: the numbers of its first commit and of its first event."""

    commit: int
    first: int

    @property
    def name(self) -> str:
        """The name of the file."""
        return f"{SEGMENTS}/{self.commit:012d}-{self.first:015d}.parquet"

    @classmethod
    def of(cls, name: str) -> Place | None:
        """Return the place in the name of a file in the folder of segments; None if it is no segment."""
        match = _NAME.fullmatch(name)
        return None if match is None else cls(int(match[1]), int(match[2]))


@attrs.frozen
class Header:
    """The first and the last commit of a segment, its first and last event, the digests before and after its lines, and the writer of each commit."""

    commits: tuple[int, int]
    events: tuple[int, int]
    prev: bytes
    digest: bytes
    writers: str


def encoded(commits: Sequence[Commit], state: State) -> tuple[Place, bytes]:
    """Return the segment of *commits*, which follow one another. *state* is the state after them.

    :raises LedgerError: if an event does not have the form of an event.
    """
    first, last = commits[0], commits[-1]
    header = {
        "format": _FORMAT,
        "commits": [first.number, last.number],
        "events": [first.first, last.last],
        "prev": first.prev.hex(),
        "digest": last.digest.hex(),
        "writers": "".join(commit.writer for commit in commits),
    }
    rows = [row for commit in commits for row in commit.rows]
    packed = base64.b64encode(zlib.compress(state.packed()))
    marks = b"".join(commit.marks for commit in commits)
    return Place(first.number, first.first), written(
        rows, first.first, marks, {_HEADER: orjson.dumps(header), _STATE: packed}
    )


def written(rows: Sequence[Row], first: int, marks: bytes, metadata: dict[bytes, bytes]) -> bytes:
    """Return the file of *rows*, whose first event has the number *first*. *marks* has the first bytes of the digest of each line.

    :raises LedgerError: if a row does not have the form of an event.
    """
    import pyarrow as pa  # type: ignore[import-untyped]  # here: a short look at a small ledger needs none of its 140 MB
    from pyarrow import parquet

    values = zip(*(row.columns for row in rows), strict=True) if rows else ((),) * len(VALUES)
    text = pa.string()
    arrays = [
        pa.array(range(first, first + len(rows)), pa.int64()),
        *(pa.array(column, text) for column in values),
        pa.array([row.payload for row in rows], text),
        pa.array([row.content_digest for row in rows], text),
        pa.array([row.content_at for row in rows], text),
        pa.array([row.content for row in rows], text),
        pa.array(struct.unpack(f">{len(rows)}i", marks), pa.int32()),
        pa.array(_packed_columns(rows, first), pa.binary()),
    ]
    table, sink = pa.Table.from_arrays(arrays, names=(*_COLUMNS, _PACKED)), pa.BufferOutputStream()
    with parquet.ParquetWriter(
        sink,
        table.schema,
        compression="zstd",
        compression_level=_LEVEL,
        write_page_checksum=True,
        store_schema=False,
        write_statistics=["seq", "type", "time", "run_id", "session_id", "subject_kind", "subject_id"],
        use_dictionary=[name for name in VALUES if name not in ("id", "subject_id")],
        column_encoding={"id": "DELTA_BYTE_ARRAY", "seq": "DELTA_BINARY_PACKED", "mark": "PLAIN"},
    ) as writer:
        writer.write_table(table, row_group_size=_GROUP_ROWS)
        writer.add_key_value_metadata(metadata)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _packed_columns(rows: Sequence[Row], first: int) -> list[bytes | None]:
    """Return the columns of each group of *rows* at the place of its first row."""
    from dicast.reading.blocks.stored_columns import UNREADABLE  # no commit needs it

    from .columns import columns_of_rows

    column: list[bytes | None] = [None] * len(rows)
    for start in range(0, len(rows), _GROUP_ROWS):
        group = rows[start : start + _GROUP_ROWS]
        try:
            column[start] = columns_of_rows(group).packed()
        except UNREADABLE as error:
            last = first + start + len(group) - 1
            raise LedgerError(f"events {first + start} to {last} do not have the form of events: {error}") from error
    return column


def _text_array(texts: Collection[str]) -> Any:
    """Return *texts* as an array. ``pyarrow.array`` would import pandas where it is installed, which takes longer than most commands."""
    import pyarrow as pa

    encoded = [text.encode() for text in texts]
    ends = array("i", accumulate(map(len, encoded), initial=0))
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(encoded)))


class Segment:
    """A segment in memory. Its rows are read a group at a time.

    :raises LedgerError: naming the file, if it was cut or changed.
    """

    def __init__(self, name: str, data: bytes) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        self.name = name
        self._broken = (pa.ArrowException, OSError)
        try:
            self._file = parquet.ParquetFile(pa.BufferReader(data), page_checksum_verification=True, pre_buffer=False)
            metadata = self._file.metadata.metadata or {}
            header = orjson.loads(metadata[_HEADER])
            if header["format"] not in _KINDS:
                raise ValueError(f"its format is {header['format']!r}; this version reads the formats 1 to {_FORMAT}")
            self._has_columns = header["format"] == _FORMAT
            newest = orjson.dumps({**header, "format": _FORMAT})
            self._metadata = {_HEADER: newest, _STATE: metadata[_STATE]}
            self.header = Header(
                *(tuple(header["commits"]), tuple(header["events"])),
                *(bytes.fromhex(header["prev"]), bytes.fromhex(header["digest"])),
                str(header["writers"]),
            )
            (first, last), rows = self.header.events, self._file.metadata.num_rows
            kinds = {field.name: str(field.type) for field in self._file.schema_arrow}
            if kinds != _KINDS[header["format"]] or rows != last + 1 - first:
                raise ValueError(f"it has {rows} rows, whose columns are {kinds}")
        except (*self._broken, LookupError, TypeError, ValueError) as error:
            raise LedgerError(f"{name}: the file was cut or changed: {error}") from error

    def writer_of(self, number: int) -> str:
        """Return the writer of the commit with this number."""
        start = WRITER_DIGITS * (number - self.header.commits[0])
        return self.header.writers[start : start + WRITER_DIGITS]

    def state(self) -> State:
        """Return the state of the ledger after the segment.

        :raises LedgerError: if it was changed.
        """
        try:
            return State.of(zlib.decompress(base64.b64decode(self._metadata[_STATE])))
        except (LookupError, TypeError, ValueError, ArithmeticError, zlib.error) as error:
            raise LedgerError(f"{self.name}: the state was changed: {error!r}") from error

    def types(self) -> frozenset[str]:
        """Return the types of its events.

        :raises LedgerError: naming the rows, if they were changed.
        """
        from pyarrow import compute

        with self._errors(*self.header.events):
            column = self._file.read(columns=["type"], use_threads=False).column("type")
            return frozenset(compute.unique(column).to_pylist())

    def rows(
        self, equal: dict[str, Collection[str]], low: int, high: int, *, newest_first: bool = False
    ) -> Iterator[tuple[int, Row]]:
        """Yield the rows with numbers above *low* and up to *high* that have one of the values of *equal* in each of its columns, with their numbers.

        :raises LedgerError: naming the rows, if they were changed.
        """
        bounds = self._bounds()
        for group, first, last in reversed(bounds) if newest_first else bounds:
            if last > low and first <= high and not self._lacks(group, equal):
                matches_in_group = self._group(group, first, last, equal, low, high)
                yield from reversed(matches_in_group) if newest_first else matches_in_group

    def columns(
        self, equal: dict[str, Collection[str]], low: int, high: int, newest: int
    ) -> Iterator[tuple[int, Stored]]:
        """Yield the columns of the groups with numbers above *low* and up to *high* that may have a value of *equal* in each of its columns, with the number of the first event.

        :param newest: the number of the last event that the columns may have.
        :raises LedgerError: naming the rows, if they were changed.
        """
        from dicast.reading.blocks.stored_columns import StoredColumns  # no run needs it

        from .columns import made_columns

        for group, first, last in self._bounds():
            if last > low and first <= high and not self._lacks(group, equal):
                with self._errors(first, last):
                    if self._has_columns and last <= newest:
                        table = self._file.read_row_group(group, columns=[_PACKED], use_threads=False)
                        columns: Stored = StoredColumns.of(table.column(_PACKED)[0].as_py())
                    else:
                        rows = self._matching(group, first, last, {}, 0, newest)
                        columns = made_columns(row for _, row in rows)
                yield first, columns

    def verified(self, prev: bytes) -> Iterator[Group]:
        """Yield all rows with their digests after checking their lines against the marks and the digests.

        :raises LedgerError: naming the first row that was changed, after the rows before it.
        """
        if self.header.prev != prev:
            raise LedgerError(f"{self.name}: it does not follow the digest of the event before it")
        digest, expected = prev, self.header.events[0]
        for number in range(self._file.num_row_groups):
            count = self._file.metadata.row_group(number).num_rows
            with self._errors(expected, expected + count - 1):
                table = self._file.read_row_group(number, use_threads=False)
                whole = checked_table(table, VALUES, expected, digest, packed=_PACKED if self._has_columns else None)
            for group in (whole,) if whole is not None else self._checked_rows(table, expected, digest):
                yield group
                digest, expected = [digest, *group.digests[-1:]][-1], expected + len(group.digests)
        if digest != self.header.digest or expected != self.header.events[1] + 1:
            raise LedgerError(f"{self.name}: the digest does not follow from its events")

    def _checked_rows(self, table: Any, first: int, digest: bytes) -> Iterator[Group]:
        """Yield the rows of *table*, whose first event is *first*, up to the first fault. *digest* is the digest before them.

        :raises LedgerError: naming the first row that was changed.
        """
        with self._errors(first, first + table.num_rows - 1):
            marks, rows = table.column("mark").to_pylist(), rows_of(table, VALUES)
        checked, digests = list[Row](), list[bytes]()
        try:
            for expected, ((seq, row), mark) in enumerate(zip(rows, marks, strict=True), first):
                (digest,) = self._linked(digest, expected, row)
                if seq != expected or int.from_bytes(digest[:MARK_BYTES], "big", signed=True) != mark:
                    raise LedgerError(f"{self.name}: event {expected} was changed")
                if row.content is not None and sha256(row.content.encode()).hexdigest() != row.content_digest:
                    raise LedgerError(f"{self.name}: the content of event {expected} was changed")
                checked.append(row)
                digests.append(digest)
        except LedgerError:
            if checked:
                yield Group.of(checked, digests)
            raise
        if self._has_columns:
            from .columns import columns_of_rows, refuse_changed  # no run needs them

            with self._errors(first, first + table.num_rows - 1):
                refuse_changed(table.column(_PACKED), columns_of_rows(checked))
        yield Group.of(checked, digests)

    def without(self, erased: Mapping[str, int]) -> bytes | None:
        """Return the file without erased contents; None if it has none of them. *erased* has the number of the event of its erasure for each digest."""
        _, end = self.header.events

        def is_erased(seq: int, row: Row) -> bool:
            return row.content is not None and seq < erased.get(row.content_digest or "", 0)

        if not any(is_erased(seq, row) for seq, row in self.rows({"content_digest": erased.keys()}, 0, end)):
            return None
        rows = []
        for seq, row in self.rows({}, 0, end):
            if is_erased(seq, row):
                row.content = None
            rows.append(row)
        links = chain_of(self.header.prev, [row.line() for row in rows])
        marks = b"".join([link[:MARK_BYTES] for link in links])
        return written(rows, self.header.events[0], marks, self._metadata)

    def _linked(self, digest: bytes, seq: int, row: Row) -> list[bytes]:
        try:
            return chain_of(digest, [row.line()])
        except (TypeError, AttributeError) as error:
            raise LedgerError(f"{self.name}: event {seq} was changed: {error}") from error

    def _bounds(self) -> list[tuple[int, int, int]]:
        """Return the number, the first event and the last event of each group of rows."""
        start, bounds = self.header.events[0], list[tuple[int, int, int]]()
        for group in range(self._file.num_row_groups):
            count = self._file.metadata.row_group(group).num_rows
            bounds.append((group, start, start + count - 1))
            start += count
        return bounds

    def _lacks(self, group: int, equal: dict[str, Collection[str]]) -> bool:
        """Return True if the bounds of a column show that no row of the group has one of its values."""
        row_group = self._file.metadata.row_group(group)
        for column, values in equal.items():
            statistics = row_group.column(_COLUMNS.index(column)).statistics
            if (
                statistics is not None
                and statistics.has_min_max
                and not any(statistics.min <= value <= statistics.max for value in values)
            ):
                return True
        return False

    def _group(
        self, group: int, first: int, last: int, equal: dict[str, Collection[str]], low: int, high: int
    ) -> list[tuple[int, Row]]:
        with self._errors(first, last):
            return self._matching(group, first, last, equal, low, high)

    def _matching(
        self, group: int, first: int, last: int, equal: dict[str, Collection[str]], low: int, high: int
    ) -> list[tuple[int, Row]]:
        from pyarrow import compute

        read = partial(self._file.read_row_group, group, use_threads=False)  # no threads at the end of a command
        offset = max(low + 1 - first, 0)
        count = min(high, last) - first + 1 - offset
        mask = None
        if equal:
            keys = read(columns=[*equal]).slice(offset, count)
            for column, values in equal.items():
                matches = compute.is_in(keys.column(column), value_set=_text_array(values))
                mask = matches if mask is None else compute.and_(mask, matches)
            if not compute.any(mask).as_py():
                return []
        table = read(columns=[*_COLUMNS[:-1]]).slice(offset, count)
        return rows_of(table if mask is None else table.filter(mask), VALUES)

    @contextmanager
    def _errors(self, first: int, last: int) -> Iterator[None]:
        try:
            yield
        except (*self._broken, LookupError, ValueError, TypeError, AttributeError) as error:
            raise LedgerError(f"{self.name}: events {first} to {last} were changed: {error}") from error
