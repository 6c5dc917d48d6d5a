"""Readers: connections in any thread, and the events of a query from the blocks that may have them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import orjson
import psycopg

from dicast import Entry, Event, JudgedRow, LedgerError, Query
from dicast.toolkit.ledger_lines import Maker, chained, events_in, leaf_of, lines_in, matches
from dicast.toolkit.ledger_lines.lines import CONTENT, EVENT
from dicast.toolkit.ledger_lines.selection import refuse_changed
from dicast.toolkit.ledger_lines.traced import ITEM_TEXTS, SUBJECTS, traces_of

from .server import Naps, Server, is_lost

if TYPE_CHECKING:
    from dicast.reading.blocks.stored_columns import Stored

_BLOCKS_A_FETCH = 50
"""Blocks that a reader fetches at once."""

T = TypeVar("T")
Connection = psycopg.Connection[Any]
Line = Sequence[Any]

_READ, _TYPE = "subject.read", 2
"""Type of the event with the content of a subject, and the place of the type in the line of an event."""

_VERIFIED_TYPES = frozenset(("run.started", "run.completed", "run.stopped"))
"""Types whose blocks are checked when they are read: they are few, and every reader depends on them."""


@attrs.define
class Snapshot:
    """One state of the ledger: all events up to the number *newest* that will ever be there."""

    connection: Connection
    newest: int
    makers: Makers

    def content(self, digests: Sequence[str]) -> dict[str, bytes]:
        """Return the contents with these digests, without the absent."""
        if not digests:
            return {}
        query = "SELECT digest, body FROM texts WHERE digest = ANY(%b)"
        rows = self.connection.execute(query, ([bytes.fromhex(digest) for digest in set(digests)],))
        return {digest.hex(): body.encode() for digest, body in rows}


class Makers(dict[str, Maker]):
    """Makers of a ledger by name, read on first use."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection

    def __missing__(self, name: str) -> Maker:
        """Read the maker.

        :raises LookupError: if the ledger does not have it.
        """
        row = self._connection.execute("SELECT line FROM makers WHERE name = %s", (name,)).fetchone()
        if row is None:
            raise LookupError(f"there is no maker {name!r}")
        maker = self[name] = Maker.of(row[0].encode())
        return maker


class Readers:
    """Connections for readers, each used by one reader at a time.

    A reading whose connection is lost is repeated. *timeout* is the time in seconds to wait for the server.
    """

    def __init__(self, server: Server, timeout: float) -> None:
        self._server, self._timeout = server, timeout
        self._idle: list[Connection] = []
        self._is_closed = False

    def close(self) -> None:
        """Close the idle connections. Open readings continue."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()

    def answer_of(self, ask: Callable[[Connection], T]) -> T:
        """Return the result of *ask* on a connection that no other reader uses.

        :raises LedgerError: if the server cannot be reached, or a statement fails.
        """
        naps = Naps(self._timeout)
        while True:
            try:
                with self._connected() as connection:
                    return ask(connection)
            except psycopg.Error as error:
                self._rest(naps, error)

    def result_of(self, read: Callable[[Snapshot], T]) -> T:
        """Return the result of *read* on one state of the ledger. Changes that are under way are waited for, which takes milliseconds.

        :raises LedgerError: if the server cannot be reached, or a row was changed.
        """

        def ask(connection: Connection) -> T:
            with self._snapshot(connection, None) as snapshot:
                return read(snapshot)

        return self.answer_of(ask)

    def rows_of(self, read: Callable[[Snapshot], Iterator[T]]) -> Iterator[T]:
        """Yield the rows of *read* on the state of the ledger when the first row is requested. A repeated reading leaves out the rows before.

        :raises LedgerError: as :meth:`result_of`.
        """
        newest, count, before, naps = None, 0, 0, Naps(self._timeout)
        while True:
            try:
                with self._connected() as connection, self._snapshot(connection, newest) as snapshot:
                    newest = snapshot.newest
                    for row in islice(read(snapshot), count, None):
                        count += 1
                        yield row
                    return
            except psycopg.Error as error:
                if count > before:
                    before, naps = count, Naps(self._timeout)
                self._rest(naps, error)

    def _rest(self, naps: Naps, error: psycopg.Error) -> None:
        """Wait before a reading is repeated.

        :raises LedgerError: if it is not repeated.
        """
        if (nap := naps.next_nap(error)) is None:
            raise self._server.fault(error) from error
        time.sleep(nap)

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        """Yield a connection that no other reader uses.

        :raises psycopg.Error: if the server cannot be reached, or a statement fails.
        """
        connection = None
        try:
            connection = self._working()
            yield connection
        except GeneratorExit:  # the reader has enough rows
            self._release(connection)
            raise
        except BaseException:
            _close(connection)
            raise
        self._release(connection)

    @contextmanager
    def _snapshot(self, connection: Connection, newest: int | None) -> Iterator[Snapshot]:
        """Yield the state of the ledger up to the event *newest*, which is by default the newest one.

        :raises LedgerError: if a row was changed.
        """
        if newest is None:
            ((newest,),) = connection.execute("SELECT newest_number()").fetchall()
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            yield Snapshot(connection, newest, Makers(connection))
        except (ValueError, LookupError, TypeError) as error:
            raise LedgerError(f"{self._server.place}: {error}: run dicast ledger verify") from error
        finally:
            if not connection.closed:
                connection.execute("ROLLBACK")

    def _working(self) -> Connection:
        """Return an idle connection that still works, or a new one."""
        while self._idle:
            connection = self._idle.pop()
            try:
                connection.execute("SELECT 1")
            except psycopg.Error as error:
                connection.close()
                if not is_lost(error):
                    raise
            else:
                return connection
        return self._server.connect_reader()

    def _release(self, connection: Connection | None) -> None:
        if connection is not None and not self._is_closed:
            self._idle.append(connection)
        else:
            _close(connection)


def _close(connection: Connection | None) -> None:
    if connection is not None:
        connection.close()


def newest_block(snapshot: Snapshot) -> tuple[int, bytes] | None:
    """Return the number of the last event of the newest block, and the digest after it; None for an empty ledger."""
    query = "SELECT last, digest FROM blocks WHERE first <= %s ORDER BY first DESC LIMIT 1"
    return snapshot.connection.execute(query, (snapshot.newest,)).fetchone()


def entries(snapshot: Snapshot, query: Query) -> Iterator[Entry]:
    """Yield the entries of *query*. Only the newest entry of the ledger has a digest, which is the digest of its line.

    :raises ValueError: if a block cannot be read.
    """
    left = query.limit
    newest, digest = newest_block(snapshot) or (0, b"")
    if left is not None and left <= 0:
        return
    for first, prev, marks, shard, body in _blocks(snapshot, query):
        try:
            lines = orjson.loads(body)
            contents = _contents(snapshot, query, lines)
            events = list(matches(first, lines, query, snapshot.makers, contents.get))
            if not _VERIFIED_TYPES.isdisjoint([event.type for _, event in events]):
                refuse_changed(prev, marks, lines_in(len(body), body))
        except (ValueError, LookupError, TypeError) as error:
            raise ValueError(f"the block from event {first}: {error}") from error
        for seq, event in reversed(events) if query.newest_first else events:
            yield Entry(seq, event, "", digest.hex() if seq == newest else "", shard)
            if left is not None:
                left -= 1
                if not left:
                    return


def entries_at(snapshot: Snapshot, seqs: Sequence[int]) -> list[Entry]:
    """Return the entries with the ascending numbers *seqs*.

    :raises LookupError: if the ledger does not have one of them.
    """
    by_number: dict[int, Entry] = {}
    statement = """SELECT DISTINCT ON (first) first, shard, body FROM unnest(%s::bigint[]) AS seq JOIN blocks ON first =
        (SELECT max(first) FROM blocks WHERE first <= seq)"""
    for first, shard, body in snapshot.connection.execute(statement, (list(seqs),)).fetchall():
        text = body.encode()
        lines = list(map(orjson.loads, lines_in(len(text), text)))
        contents = _contents(snapshot, Query(), lines)
        numbers = frozenset(seqs)
        for seq, event in matches(first, lines, Query(), snapshot.makers, contents.get, numbers):
            by_number[seq] = Entry(seq, event, "", "", shard)
    for seq in seqs:
        if seq not in by_number:
            raise LookupError(f"event {seq} is missing")
    return [by_number[seq] for seq in seqs]


def digest_at(snapshot: Snapshot, seq: int) -> str | None:
    """Return the digest of the line whose last event has the number *seq*, or None.

    :raises ValueError: if the block cannot be read.
    """
    query = "SELECT first, last, prev, digest, body FROM blocks WHERE first <= %s AND last >= %s ORDER BY first DESC LIMIT 1"
    row = snapshot.connection.execute(query, (seq, seq)).fetchone()
    if row is None:
        return None
    first, last, digest, end, body = row
    if last == seq:
        return bytes(end).hex()
    last, text = first - 1, body.encode()
    for line in lines_in(len(text), text):
        if last == seq:
            break
        digest, _ = chained(digest, [leaf_of(line)])
        last += events_in(orjson.loads(line), snapshot.makers)
    return digest.hex() if last == seq else None


def all_lines(snapshot: Snapshot) -> Iterator[tuple[Line, Makers]]:
    """Yield all lines as parsed JSON, with the makers.

    :raises ValueError: if a block cannot be read.
    """
    for first, _, _, _, body in _blocks(snapshot, Query()):
        try:
            for line in lines_in(len(body), body):
                yield orjson.loads(line), snapshot.makers
        except (ValueError, LookupError, TypeError) as error:
            raise ValueError(f"the block from event {first}: {error}") from error


def records(snapshot: Snapshot, run_id: str, after: int) -> Iterator[tuple[int, Event | JudgedRow]]:
    """Yield the events of a run after the event *after* with their numbers; a judged subject with the number of its first event.

    :raises ValueError: if a block cannot be read.
    """
    from dicast.toolkit.ledger_lines.records import RowReader, records_in  # most runs read no records

    query, rows = Query(run_id, after=after), RowReader()
    for first, _, _, _, body in _blocks(snapshot, query):
        try:
            lines = orjson.loads(body)
            contents = _contents(snapshot, query, lines)
            yield from records_in(first, lines, query, snapshot.makers, contents.get, rows)
        except (ValueError, LookupError, TypeError) as error:
            raise ValueError(f"the block from event {first}: {error}") from error


def block_columns(snapshot: Snapshot, query: Query) -> Iterator[tuple[int, Stored]]:
    """Yield the columns of the blocks that may have events of *query*, with the number of the first event of the block. The columns of a small block are computed from its lines.

    :raises ValueError: if a block cannot be read.
    """
    from dicast.reading.blocks.making import Layouts  # no run needs them
    from dicast.reading.blocks.merging import columns_of_lines, reading_block
    from dicast.reading.blocks.stored_columns import StoredColumns

    layouts = Layouts(snapshot.makers)
    selection = "first, columns, CASE WHEN columns IS NULL THEN body END"
    for first, stored, body in _selected(snapshot, query, selection):
        with reading_block(first):
            columns = columns_of_lines(orjson.loads(body), layouts) if stored is None else StoredColumns.of(stored)
        yield first, columns


def _blocks(snapshot: Snapshot, query: Query) -> Iterator[tuple[int, bytes, bytes, int, bytes]]:
    """Yield the number of the first event, the digest before the block, its marks, its shard and its body."""
    for first, prev, marks, shard, body in _selected(snapshot, query, "first, prev, marks, shard, body"):
        yield first, prev, marks, shard, body.encode()


def _selected(snapshot: Snapshot, query: Query, selection: str) -> Iterator[tuple[Any, ...]]:
    """Yield the columns *selection* of the blocks that may have events of *query*."""
    subject = None if query.subject_id is None else query.subject_id.encode()
    conditions = {
        "first <= %s": snapshot.newest,
        "last > %s": query.after or None,
        "run_id = %s": query.run_id,
        "types && %s": list(query.types) or None,
        "began <= %s": query.until,
        "low <= %b": subject,
        "high >= %b": subject,
    }
    chosen = {condition: value for condition, value in conditions.items() if value is not None}
    order = "DESC" if query.newest_first else "ASC"
    statement = f"SELECT {selection} FROM blocks WHERE {' AND '.join(chosen)} ORDER BY first {order}"
    with snapshot.connection.cursor("blocks") as cursor:
        cursor.itersize = _BLOCKS_A_FETCH if query.limit is None else min(_BLOCKS_A_FETCH, query.limit)
        cursor.execute(statement, [*chosen.values()])
        yield from cursor


def _contents(snapshot: Snapshot, query: Query, lines: Iterable[Line]) -> dict[str, bytes]:
    """Return the contents of the events among *lines* whose types *query* has."""
    types = frozenset(query.types)
    return snapshot.content([digest for line in lines for digest in _digests(line, snapshot.makers, types)])


def _digests(line: Line, makers: Mapping[str, Maker], types: Collection[str]) -> Iterator[str]:
    """Yield the digests of the contents of the events of a line; only of *types*, if it is not empty.

    :raises LookupError: if a maker is missing.
    """
    if line[0] == EVENT:
        if len(line) > CONTENT and (not types or line[_TYPE] in types):
            yield line[CONTENT]
    elif line[0] in SUBJECTS:
        if (place := makers[line[1]].content) is not None and (not types or _READ in types):
            yield line[place]
        for item in traces_of(line):
            if len(item) > ITEM_TEXTS and (not types or item[1] in types):
                yield item[ITEM_TEXTS]
