"""Blocks: up to 1,000 lines as one row of the table ``blocks``.

*body* is a JSON list with each line on a line of the text, compressed by zlib if *size*, the length of the list, is not the length of *body*. *first*
and *last* are the numbers of its events, *lines* the number of its lines. The other columns are hints for readers: *run_id* (NULL for several runs),
*types* (separated by blanks), *low* and *high* (the bounds of the subjects' ids), *began* and *ended* (the bounds of the times). *prev* and
*digest* are the digests before and after the lines, and *marks* has 4 bytes of the digest of each line. *columns* has values of the lines for readers of many
verdicts (see :mod:`.columns`), or NULL for small appends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain
from typing import Any

import orjson

from ..._kernel.classes import define
from . import deflate
from .chain import chained, leaf_of
from .judged import RECORD

MOST_LINES, MOST_BYTES = 1_000, 512 * 1024
"""Most lines of a block, and most bytes of them before the compression, unless one line is longer."""

LEVEL = 5
"""Level of zlib-ng: 4 takes four fifths of the time and 4 % more bytes; 6 takes 65 % more time and saves 1 %."""

COLUMNS = (
    *("first", "last", "lines", "run_id", "types", "low", "high", "began", "ended", "prev", "digest", "marks"),
    *("columns", "size", "body"),
)
_JUDGED_TYPES = "subject.read", "eval.started", "eval.completed"

_START, _BETWEEN, _END = b"[\n", b",\n", b"\n]"


Columns = Callable[[Iterable[Sequence[Any]]], bytes]
"""Function that makes the columns of a block from its parsed lines."""


@define
class Hints:
    """Facts of the events of a block, with which readers skip it."""

    run_id: str | None
    types: Collection[str]
    low: str | None
    high: str | None
    began: str
    ended: str

    @classmethod
    def of(cls, records: Sequence[Any]) -> Hints:
        """Return the hints of *records*: events, and judged subjects in place of their events."""
        types = {record.type for record in records}
        subjects = {record.subject_id for record in records}
        subjects.discard(None)
        low, high = (min(subjects), max(subjects)) if subjects else (None, None)
        if RECORD not in types:
            runs, times = {record.run_id for record in records}, [record.time for record in records]
        else:
            types.remove(RECORD)
            types.update(_JUDGED_TYPES)
            judged = [record for record in records if record.type == RECORD]
            runs, times = {record.maker.run_id for record in judged}, [*chain(*[record.times for record in judged])]
            if len(judged) < len(records):
                events = [record for record in records if record.type != RECORD]
                runs.update([event.run_id for event in events])
                times += [event.time for event in events]
        return cls(runs.pop() if len(runs) == 1 else None, types, low, high, min(times), max(times))

    @classmethod
    def joined(cls, parts: Sequence[Hints]) -> Hints:
        """Return the hints of several blocks together."""
        runs = {part.run_id for part in parts}
        lows = [part.low for part in parts if part.low is not None]
        highs = [part.high for part in parts if part.high is not None]
        return cls(
            runs.pop() if len(runs) == 1 else None,
            set[str]().union(*(part.types for part in parts)),
            min(lows, default=None),
            max(highs, default=None),
            min(part.began for part in parts),
            max(part.ended for part in parts),
        )


@define
class Sheet:
    """Lines that become a block: their leaves, their number of events, their hints, and their stored form."""

    leaves: Sequence[bytes]
    events: int
    hints: Hints
    columns: bytes | None
    size: int
    body: bytes

    @classmethod
    def of(cls, lines: Sequence[bytes], events: int, hints: Hints, columns: bytes | None) -> Sheet:
        """Return the sheet of *lines*. With *columns* it is compressed if this makes it smaller."""
        size, body = body_of(lines, packed=columns is not None)
        return cls([*map(leaf_of, lines)], events, hints, columns, size, body)

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
    return _stored(_list_of(lines), packed=packed)


def _list_of(lines: Iterable[bytes]) -> bytes:
    return _START + _BETWEEN.join(lines) + _END


def _stored(raw: bytes, *, packed: bool) -> tuple[int, bytes]:
    body = deflate.compress(raw, LEVEL) if packed else raw
    return len(raw), body if len(body) < len(raw) else raw


def is_end(type_: str) -> bool:
    """Return True if the table ``runs`` has the number of the last event of a run after an event of this type, even if it is a small append."""
    return type_.startswith("run.")


def is_packed(size: int, body: bytes) -> bool:
    """Return True if *body* is compressed."""
    return size != len(body)


def lines_in(size: int, body: bytes) -> list[bytes]:
    """Return the lines of a body.

    :raises ValueError: if the body is not the list of lines that a ledger writes.
    """
    return split(list_in(size, body))


def split(raw: bytes) -> list[bytes]:
    """Return the lines of a JSON list of lines.

    :raises ValueError: if it is not the list that a ledger writes.
    """
    return _inner(raw).split(_BETWEEN)


def _inner(raw: bytes) -> bytes:
    if not (raw.startswith(_START) and raw.endswith(_END)):
        raise ValueError("the body is not a list of lines")
    return raw[len(_START) : -len(_END)]


def list_in(size: int, body: bytes) -> bytes:
    """Return the JSON list in a body.

    :raises ValueError: if it cannot be decompressed to *size* bytes.
    """
    if not is_packed(size, body):
        return body
    reader = deflate.decompressobj()
    try:
        raw: bytes = reader.decompress(body, size + 1)
    except deflate.error as error:
        raise ValueError(f"the body cannot be decompressed: {error}") from error
    if len(raw) != size or not reader.eof or reader.unused_data:
        raise ValueError(f"the body does not have {size} bytes")
    return raw


def beginning_of(size: int, body: bytes, count: int) -> bytes:
    """Return the first *count* bytes of the JSON list in a body.

    :raises ValueError: if they cannot be decompressed.
    """
    if not is_packed(size, body):
        return body[:count]
    try:
        beginning: bytes = deflate.decompressobj().decompress(body, count)
    except deflate.error as error:
        raise ValueError(f"the body cannot be decompressed: {error}") from error
    return beginning


def parts_of(lines: Sequence[tuple[int, int]], most: int = MOST_BYTES) -> list[tuple[slice, int]]:
    """Return the slices of lines that become blocks, each with its number of events. *lines* has the size of each line and its number of events, *most* is the
    most bytes of a block.
    """
    parts = []
    start = total = events = end = 0
    for end, (size, count) in enumerate(lines, 1):
        if events and (end - 1 - start >= MOST_LINES or total + size > most):
            parts.append((slice(start, end - 1), events))
            start, total, events = end - 1, 0, 0
        total, events = total + size, events + count
    if end > start:
        parts.append((slice(start, end), events))
    return parts


def joined(rows: Sequence[Sequence[Any]], columns: Columns) -> tuple[Any, ...]:
    """Return rows of :data:`ROW` that follow one another as one row, compressed, with *columns*. The digests of their lines do not change."""
    hints = Hints.joined([_hints_in(row) for row in rows])
    raw = _list_of(_inner(list_in(*row[-2:])) for row in rows)
    marks = b"".join(row[11] for row in rows)
    return (
        *(rows[0][0], rows[-1][1], sum(row[2] for row in rows), hints.run_id, " ".join(sorted(hints.types))),
        *(hints.low, hints.high, hints.began, hints.ended, rows[0][9], rows[-1][10], marks),
        columns(orjson.loads(raw)),
        *_stored(raw, packed=True),
    )


def _hints_in(row: Sequence[Any]) -> Hints:
    run_id, types, low, high, began, ended = row[3:9]
    return Hints(run_id, types.split(" "), low, high, began, ended)
