"""Reading: the events of a query from the blocks that may have them."""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from dicast import Entry, Event, Query

from .blocks import lines_in, list_in, newest
from .chain import MARK_BYTES, chained, leaf_of
from .lines import EVENT, event_of, events_of
from .makers import Maker
from .recent import Block, Recent, events_in
from .texts import Texts
from .traced import SUBJECTS, count_of, traces_of

Line = Sequence[Any]

_VERIFIED_TYPES = frozenset(("run.started", "run.completed", "run.stopped"))
"""Types whose blocks are checked when they are read: they are few, and every reader depends on them."""


class Makers(dict[str, Maker]):
    """Makers of a ledger by name, read on first use."""

    def __init__(self, connection: sqlite3.Connection, recent: Recent | None = None) -> None:
        super().__init__({} if recent is None else recent.makers)
        self._connection, self._recent = connection, recent

    def __missing__(self, name: str) -> Maker:
        """Read the maker.

        :raises LookupError: if the ledger does not have it.
        """
        row = self._connection.execute("SELECT line FROM makers WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise LookupError(f"there is no maker {name!r}")
        maker = self[name] = Maker.of(row[0].encode())
        if self._recent is not None:
            self._recent.add_maker(maker)
        return maker


def selection_of(
    connection: sqlite3.Connection, query: Query, columns: str = "first, size, body"
) -> tuple[str, list[object]] | None:
    """Return the statement that reads *columns* of the blocks that may have events of *query*, with its values; None if no block can."""
    bounds = None
    if query.run_id is not None:
        statement = "SELECT first_seq, last_seq FROM runs WHERE run_id = ?"
        bounds = connection.execute(statement, (query.run_id,)).fetchone()
        if bounds is None:
            return None
    conditions = {
        "first >= coalesce((SELECT max(first) FROM blocks WHERE first <= ?), 0)": query.after + 1
        if query.after
        else None,
        "began <= ?": query.until,
        "low <= ?": query.subject_id,
        "high >= ?": query.subject_id,
        "(columns IS NULL OR instr(columns, ?))": _hash_of(query.subject_id),
        "(columns IS NULL OR instr(columns, (?)))": _hash_of(query.session_id),
        "(run_id = ? OR run_id IS NULL)": query.run_id,
        "last >= ?": None if bounds is None else bounds[0],
        "first <= ?": None if bounds is None else bounds[1],
    }
    chosen = {condition: value for condition, value in conditions.items() if value is not None}
    types = " OR ".join(["instr(' ' || types || ' ', ' ' || ? || ' ')"] * len(query.types))
    where = " AND ".join([*chosen, *([f"({types})"] if types else [])])
    order = "DESC" if query.newest_first else "ASC"
    statement = f"SELECT {columns} FROM blocks {f'WHERE {where}' if where else ''} ORDER BY first {order}"
    return statement, [*chosen.values(), *query.types]


def _hash_of(name: str | None) -> bytes | None:
    if name is None:
        return None
    from dicast.reading import name_hash  # a new run needs no columns

    return name_hash(name)


def entries(connection: sqlite3.Connection, query: Query, recent: Recent) -> Iterator[Entry]:
    """Yield the entries of *query*. Only the newest entry of the ledger has a digest, which is the digest of its line.

    :raises ValueError: if a block cannot be read; its first value is the number of its first event.
    """
    columns = "first, prev, marks, digest" + (", size, body" if query.limit is None else "")
    statement = selection_of(connection, query, columns)
    if statement is None or (query.limit is not None and query.limit <= 0):
        return
    makers, texts, left = Makers(connection, recent), Texts(connection, recent.group), query.limit
    last, digest = newest(connection) or (0, b"")
    for first, prev, marks, end, *content in connection.execute(*statement):
        try:
            is_checked, block = False, None if content else recent.block(connection, first, end, makers)
            if block is None:
                events = _matches(first, orjson.loads(list_in(*content)), query, makers, texts)
                events = iter(list(events)[::-1]) if query.newest_first else events
            else:
                events = _few_matches(block, query, makers, texts)
            for seq, event in events:
                if event.type in _VERIFIED_TYPES and not is_checked:
                    refuse_changed(prev, marks, lines_in(*content) if block is None else block.lines)
                    is_checked = True
                yield Entry(seq, event, "", digest.hex() if seq == last else "")
                if left is not None:
                    left -= 1
                    if not left:
                        return
        except (ValueError, LookupError, TypeError) as error:
            raise ValueError(f"the block from event {first}: {error}") from error


def _few_matches(block: Block, query: Query, makers: Mapping[str, Maker], texts: Texts) -> Iterator[tuple[int, Event]]:
    """Yield the events of a block that match *query*, in its order. Lines are parsed when they are needed."""
    start = max(0, bisect_right(block.starts, query.after + 1) - 1)
    if not query.newest_first:
        if start < len(block.lines):
            yield from _matches(block.starts[start], map(orjson.loads, block.lines[start:]), query, makers, texts)
        return
    for at in range(len(block.lines) - 1, start - 1, -1):
        events = _matches(block.starts[at], (orjson.loads(block.lines[at]),), query, makers, texts)
        yield from reversed(list(events))


def refuse_changed(prev: bytes, marks: bytes, lines: Sequence[bytes]) -> None:
    """Check that *marks* follow from the lines of a block after the digest *prev*.

    :raises ValueError: for the first line that was changed.
    :raises TypeError: if *marks* are not bytes.
    """
    _, expected = chained(prev, map(leaf_of, lines))
    if not isinstance(marks, bytes):
        raise TypeError(f"its marks are {marks!r}")
    if marks != expected:
        places = range(len(lines))
        place = next((place for place in places if not marks.startswith(expected[: MARK_BYTES * (place + 1)])), 0)
        raise ValueError(f"line {place + 1} was changed")


def entries_at(connection: sqlite3.Connection, seqs: Sequence[int], query: Query) -> Iterator[Entry]:
    """Yield the entries with the ascending numbers *seqs* that match *query*.

    :raises ValueError: if a block cannot be read.
    """
    makers, texts, waiting = Makers(connection), Texts(connection), list(reversed(seqs))
    statement = "SELECT first, last, size, body FROM blocks WHERE first <= ? ORDER BY first DESC LIMIT 1"
    while waiting:
        first, last, size, body = connection.execute(statement, (waiting[-1],)).fetchone() or (0, 0, 2, b"[]")
        numbers = set[int]()
        while waiting and (waiting[-1] <= last or not numbers):
            numbers.add(waiting.pop())
        try:
            for seq, event in _matches(first, orjson.loads(list_in(size, body)), query, makers, texts, numbers):
                yield Entry(seq, event, "", "")
        except (ValueError, LookupError, TypeError) as error:
            raise ValueError(f"the block from event {first}: {error}") from error


def digest_at(connection: sqlite3.Connection, seq: int) -> str | None:
    """Return the digest of the line whose last event has the number *seq*, or None.

    :raises ValueError: if the block cannot be read.
    """
    statement = """SELECT first, last, prev, digest, size, body FROM blocks
        WHERE first <= ? AND last >= ? ORDER BY first DESC LIMIT 1"""
    row = connection.execute(statement, (seq, seq)).fetchone()
    if row is None:
        return None
    first, last, digest, end, size, body = row
    if last == seq:
        return end.hex() if isinstance(end, bytes) else None
    last, makers = first - 1, Makers(connection)
    try:
        for line in lines_in(size, body):
            if last == seq:
                break
            digest, _ = chained(digest, [leaf_of(line)])
            last += events_in(orjson.loads(line), makers)
    except (ValueError, LookupError, TypeError) as error:
        raise ValueError(f"the block from event {first}: {error}") from error
    return digest.hex() if last == seq else None


def _matches(
    first: int,
    lines: Iterable[Line],
    query: Query,
    makers: Mapping[str, Maker],
    texts: Texts,
    numbers: Collection[int] | None = None,
) -> Iterator[tuple[int, Event]]:
    """Yield the events of a block that match *query*, with their numbers; only the numbers *numbers*. Lines that cannot match are not decoded."""
    seq, types = first, frozenset(query.types)
    subject, session, kind, run_id = query.subject_id, query.session_id, query.subject_kind, query.run_id
    for line in lines:
        if line[0] == EVENT:
            if (
                (not types or line[2] in types)
                and subject in (None, line[8])
                and session in (None, line[5])
                and run_id in (None, line[4])
                and kind in (None, line[7])
                and (query.until is None or line[3] <= query.until)
                and seq > query.after
                and (numbers is None or seq in numbers)
            ):
                yield seq, event_of(line, texts.get)
            seq += 1
        elif line[0] in SUBJECTS:
            maker = makers[line[1]]
            if session in (None, line[3]) and run_id in (None, maker.run_id):
                places = _places(line, maker, query, types, query.after - seq)
                if numbers is not None:
                    places = [place for place in places if seq + place in numbers]
                yield from ((seq + place, event) for place, event in events_of(line, makers, texts.get, places))
            seq += count_of(line, makers)


def _places(line: Line, maker: Maker, query: Query, types: Collection[str], after: int) -> list[int]:
    """Return the places of the events of a judged subject that match. Trace events have no subject."""
    traces, until, (subject, kind) = traces_of(line), query.until, (query.subject_id, query.subject_kind)
    places = []
    if subject in (None, line[2]) and kind in (None, maker.kind):
        places = [
            place + len(traces) if place else 0
            for place, part in enumerate(maker.parts)
            if (not types or part.type in types) and (until is None or line[6 + 2 * place] <= until)
        ]
    if traces and subject is None and kind is None:
        places += [
            place
            for place, item in enumerate(traces, 1)
            if (not types or item[1] in types) and (until is None or item[2] <= until)
        ]
        places.sort()
    return [place for place in places if place > after]
