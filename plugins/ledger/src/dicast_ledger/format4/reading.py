"""Reading: the events of a query from the blocks that may have them."""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence

import orjson

from dicast import Entry, Event, JudgedRow, Query
from dicast.toolkit.ledger_lines.blocks import lines_in, list_in
from dicast.toolkit.ledger_lines.chain import chained, leaf_of
from dicast.toolkit.ledger_lines.lines import events_in
from dicast.toolkit.ledger_lines.makers import Maker
from dicast.toolkit.ledger_lines.selection import matches, refuse_changed

from .recent import Block, Recent
from .rows import newest
from .texts import Texts

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
                events = matches(first, orjson.loads(list_in(*content)), query, makers, texts.get)
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


def records(connection: sqlite3.Connection, run_id: str, after: int) -> Iterator[tuple[int, Event | JudgedRow]]:
    """Yield the events of a run after the event *after* with their numbers; a judged subject with the number of its first event.

    :raises ValueError: if a block cannot be read; its first value is the number of its first event.
    """
    from dicast.toolkit.ledger_lines.records import RowReader, records_in  # most runs read no records

    query, makers, texts, rows = Query(run_id, after=after), Makers(connection), Texts(connection), RowReader()
    statement = selection_of(connection, query)
    for first, size, body in () if statement is None else connection.execute(*statement):
        try:
            yield from records_in(first, orjson.loads(list_in(size, body)), query, makers, texts.get, rows)
        except (ValueError, LookupError, TypeError) as error:
            raise ValueError(f"the block from event {first}: {error}") from error


def _few_matches(block: Block, query: Query, makers: Mapping[str, Maker], texts: Texts) -> Iterator[tuple[int, Event]]:
    """Yield the events of a block that match *query*, in its order. Lines are parsed when they are needed."""
    start = max(0, bisect_right(block.starts, query.after + 1) - 1)
    if not query.newest_first:
        if start < len(block.lines):
            yield from matches(block.starts[start], map(orjson.loads, block.lines[start:]), query, makers, texts.get)
        return
    for at in range(len(block.lines) - 1, start - 1, -1):
        events = matches(block.starts[at], (orjson.loads(block.lines[at]),), query, makers, texts.get)
        yield from reversed(list(events))


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
            for seq, event in matches(first, orjson.loads(list_in(size, body)), query, makers, texts.get, numbers):
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
