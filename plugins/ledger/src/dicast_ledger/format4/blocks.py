"""Blocks: up to 1,000 lines as one row of the table ``blocks``.

*body* is a JSON list with each line on a line of the text, compressed by zlib if *size*, the length of the list, is not the length of *body*. *first*
and *last* are the numbers of its events, *lines* the number of its lines. The other columns are hints for readers: *run_id* (NULL for several runs),
*types* (separated by blanks), *low* and *high* (the bounds of the subjects' ids), *began* and *ended* (the bounds of the times). *prev* and
*digest* are the digests before and after the lines, and *marks* has 4 bytes of the digest of each line. *columns* has values of the lines for readers of many
verdicts (see :mod:`.columns`), or NULL for small appends.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import attrs

from .chain import START, chained
from .judged import RECORD

MOST_LINES, MOST_BYTES = 1_000, 512 * 1024
"""Most lines of a block, and most bytes of them before the compression, unless one line is longer."""

LEVEL = 5
"""Level of zlib: 4 takes three quarters of the time and 6 % more bytes; 6 takes 40 % more time and saves nothing."""

COLUMNS = (
    *("first", "last", "lines", "run_id", "types", "low", "high", "began", "ended", "prev", "digest", "marks"),
    *("columns", "size", "body"),
)
ROW = ", ".join(COLUMNS)
BLOCKS_TABLE = """CREATE TABLE blocks (first INTEGER PRIMARY KEY, last INTEGER, lines INTEGER, run_id TEXT, types TEXT, low TEXT, high TEXT,
    began TEXT, ended TEXT, prev BLOB, digest BLOB, marks BLOB, columns BLOB, size INTEGER, body BLOB)"""
INSERT = f"INSERT INTO blocks ({ROW}) VALUES ({', '.join('?' * len(COLUMNS))})"

_JUDGED_TYPES = "subject.read", "eval.started", "eval.completed"

_START, _BETWEEN, _END = b"[\n", b",\n", b"\n]"


Columns = Callable[[bytes], bytes]
"""Function that makes the columns of a block from the JSON list of its lines."""


@attrs.frozen
class Hints:
    """Facts of the events of a block, with which readers skip it."""

    run_id: str | None
    types: frozenset[str]
    low: str | None
    high: str | None
    began: str
    ended: str

    @classmethod
    def of(cls, records: Iterable[Any]) -> Hints:
        """Return the hints of *records*: events, and judged subjects in place of their events."""
        runs, types, subjects, times = set[str](), set[str](), set[str](), set[str]()
        for record in records:
            if record.type == RECORD:
                runs.add(record.maker.run_id)
                types.update(_JUDGED_TYPES)
                times.update(record.times)
            else:
                runs.add(record.run_id)
                types.add(record.type)
                times.add(record.time)
            if record.subject_id is not None:
                subjects.add(record.subject_id)
        low, high = (min(subjects), max(subjects)) if subjects else (None, None)
        return cls(runs.pop() if len(runs) == 1 else None, frozenset(types), low, high, min(times), max(times))

    @classmethod
    def joined(cls, parts: Sequence[Hints]) -> Hints:
        """Return the hints of several blocks together."""
        runs = {part.run_id for part in parts}
        lows = [part.low for part in parts if part.low is not None]
        highs = [part.high for part in parts if part.high is not None]
        return cls(
            runs.pop() if len(runs) == 1 else None,
            frozenset[str]().union(*(part.types for part in parts)),
            min(lows, default=None),
            max(highs, default=None),
            min(part.began for part in parts),
            max(part.ended for part in parts),
        )


@attrs.frozen
class Sheet:
    """Lines that become a block: their leaves, their number of events, their hints, and their stored form."""

    leaves: tuple[bytes, ...]
    events: int
    hints: Hints
    columns: bytes | None
    size: int
    body: bytes

    @classmethod
    def of(
        cls, lines: Sequence[bytes], leaves: Sequence[bytes], events: int, hints: Hints, columns: Columns | None
    ) -> Sheet:
        """Return the sheet of *lines*. With *columns*, a function of the body as JSON, it is compressed if this makes it smaller."""
        size, body = body_of(lines, packed=columns is not None)
        packed_columns = None if columns is None else columns(b"[%b]" % b",".join(lines))
        return cls(tuple(leaves), events, hints, packed_columns, size, body)

    def row(self, first: int, prev: bytes) -> tuple[Any, ...]:
        """Return the row of the block whose first event has the number *first*, after the digest *prev*."""
        digest, marks = chained(prev, self.leaves)
        hints = self.hints
        return (
            *(first, first + self.events - 1, len(self.leaves), hints.run_id, " ".join(sorted(hints.types))),
            *(hints.low, hints.high, hints.began, hints.ended, prev, digest, marks, self.columns, self.size, self.body),
        )


def body_of(lines: Iterable[bytes], *, packed: bool) -> tuple[int, bytes]:
    """Return the size of the list of *lines*, and the list, compressed if *packed* and if this makes it smaller."""
    raw = _START + _BETWEEN.join(lines) + _END
    body = zlib.compress(raw, LEVEL) if packed else raw
    return len(raw), body if len(body) < len(raw) else raw


def is_packed(size: int, body: bytes) -> bool:
    """Return True if *body* is compressed."""
    return size != len(body)


def lines_in(size: int, body: bytes) -> list[bytes]:
    """Return the lines of a body.

    :raises ValueError: if the body is not the list of lines that a ledger writes.
    """
    raw = list_in(size, body)
    if not (raw.startswith(_START) and raw.endswith(_END)):
        raise ValueError("the body is not a list of lines")
    return raw[len(_START) : -len(_END)].split(_BETWEEN)


def list_in(size: int, body: bytes) -> bytes:
    """Return the JSON list in a body.

    :raises ValueError: if it cannot be decompressed to *size* bytes.
    """
    if not is_packed(size, body):
        return body
    reader = zlib.decompressobj()
    try:
        raw = reader.decompress(body, size + 1)
    except zlib.error as error:
        raise ValueError(f"the body cannot be decompressed: {error}") from error
    if len(raw) != size or not reader.eof or reader.unused_data:
        raise ValueError(f"the body does not have {size} bytes")
    return raw


def parts_of(lines: Iterable[tuple[int, int]], most: int = MOST_BYTES) -> Iterator[tuple[slice, int]]:
    """Yield the slices of lines that become blocks, each with its number of events. *lines* has the size of each line and its number of events, *most* is the
    most bytes of a block.
    """
    start = total = events = end = 0
    for end, (size, count) in enumerate(lines, 1):
        if events and (end - 1 - start >= MOST_LINES or total + size > most):
            yield slice(start, end - 1), events
            start, total, events = end - 1, 0, 0
        total, events = total + size, events + count
    if end > start:
        yield slice(start, end), events


def joined(rows: Sequence[Sequence[Any]], columns: Columns) -> tuple[Any, ...]:
    """Return rows of :data:`ROW` that follow one another as one row, compressed, with *columns*. The digests of their lines do not change."""
    hints = Hints.joined([_hints_in(row) for row in rows])
    lines = [line for row in rows for line in lines_in(*row[-2:])]
    marks = b"".join(row[11] for row in rows)
    return (
        *(rows[0][0], rows[-1][1], len(lines), hints.run_id, " ".join(sorted(hints.types))),
        *(hints.low, hints.high, hints.began, hints.ended, rows[0][9], rows[-1][10], marks),
        columns(b"[%b]" % b",".join(lines)),
        *body_of(lines, packed=True),
    )


def _hints_in(row: Sequence[Any]) -> Hints:
    run_id, types, low, high, began, ended = row[3:9]
    return Hints(run_id, frozenset(types.split(" ")), low, high, began, ended)


def newest(connection: sqlite3.Connection) -> tuple[int, bytes] | None:
    """Return the number of the last event and the digest of the last line, or None for an empty ledger.

    :raises sqlite3.DatabaseError: if the newest block was changed.
    """
    row = connection.execute("SELECT last, digest FROM blocks ORDER BY first DESC LIMIT 1").fetchone()
    if row is None:
        return None
    last, digest = row
    if not (isinstance(last, int) and isinstance(digest, bytes) and len(digest) == len(START)):
        raise sqlite3.DatabaseError("the newest block was changed: run dicast ledger verify")
    return last, digest
