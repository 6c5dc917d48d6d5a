"""The live ledger: appending, reading and reserving."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from itertools import chain as chained
from itertools import islice
from pathlib import Path

import attrs
import orjson

from dicast import Claim, Entry, Event, Head, Lease, LedgerError, Query, Refusal, Verification

from . import chain
from .columns import Columns
from .contents import known_contents, stored_content
from .file import connect, explain
from .leases import Leases
from .readings import Readings
from .selection import select
from .spending import Spending, amount_of
from .spent import plain
from .texts import without_texts

_TOGETHER = 200
"""Rows of one statement: separate statements take a third longer."""

_VALUES = f"({', '.join('?' * 13)})"
_INSERT = f"INSERT INTO events ({chain.ROW}) VALUES {_VALUES}"
_VERIFIED_TYPES = frozenset(("run.started", "run.completed", "run.stopped"))
"""Types whose rows are checked against their digest when they are read: they are few, and every reader depends on them."""
_INSERT_TOGETHER = _INSERT + f", {_VALUES}" * (_TOGETHER - 1)


class Live:
    """An open ledger. Its methods may be called from any thread; *path* is the file."""

    def __init__(self, path: Path, connection: sqlite3.Connection, *, store_content: bool, timeout: float) -> None:
        self.path = path
        self._connection = connection
        self._link = chain.link_of(connection)
        self._leases = Leases(connection)
        self._columns = Columns(connection)
        self._store_content = store_content
        self._timeout = timeout
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        self._lock = threading.Lock()
        self._readings = readings = Readings(self._reader, self._entry)
        self.verdict_columns, self.activity_columns = readings.verdict_columns, readings.activity_columns
        self.spent, self.open_judgments = readings.spent, readings.open_judgments

    @property
    def keeps_content(self) -> bool:
        """True if the judged texts and the payloads of traces can be read back."""
        return self._store_content

    def close(self) -> None:
        """Release the file. Open readings continue."""
        self._closed = True
        self._readings.forget()
        while self._idle:
            self._idle.pop().close()

    def append(self, events: Sequence[Event]) -> Head:
        """Append *events* in one transaction, computing the digests inside it.

        ``spend.*`` events also move the amounts that :meth:`reserve` reads.

        :raises LedgerError: when nothing was appended.
        """
        with self._transaction() as spending:
            return self._append(events, spending)

    def read(self, query: Query) -> Iterator[Entry]:
        """Yield the rows that match *query*, from the state of the ledger when the first row is requested.

        ``query.until`` is compared as text: give it in the form of the events' times.

        :raises LedgerError: when the file cannot be read.
        """
        with self._reader() as connection:
            statement = select(connection, query)
            if statement is None:
                return
            for row in connection.execute(*statement):
                yield self._entry(connection, row)

    def head(self) -> Head | None:
        """Return the newest row, or None for an empty ledger."""
        with self._reader() as connection:
            return chain.head(connection)

    def verify(self, head: str | None = None) -> Verification:
        """Check the whole chain; with *head*, also that a row has this digest.

        A missing end is reported at the number after the last row. Sums that do not follow from the chain are reported at the last row.
        """
        with self._reader() as connection:
            connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
            try:
                return chain.verify(connection, head)
            finally:
                connection.text_factory = str

    def reserve(
        self, claims: Sequence[Claim], lost: Callable[[Entry], Event], before: Sequence[Event] = ()
    ) -> Sequence[Refusal | None]:
        """Append *before*, close each reservation whose lease is over, and grant each of *claims* whose caps all hold, in one transaction.

        A reservation's lease is over when it ends before the last claim's ``event.time``, or with the lease of its run. Of the exceeded caps the first that can never
        hold is returned, else the first that only waits for open reservations. An amount of 0 is never refused.

        :raises LedgerError: if nothing was appended.
        """
        with self._transaction() as spending:
            self._append(before, spending)
            expired = spending.expired(claims[-1].event.time, self._leases.now())
            newest = self._append([lost(self._row(seq)) for seq in expired], spending)
            granted: list[Event] = []
            refusals = []
            for claim in claims:
                event = claim.event
                refusals.append(spending.exceeded(claim.caps, *_amount(event)))
                if refusals[-1] is None:
                    granted.append(event)
                    spending.record(newest.seq + len(granted), event.run_id, event.type, event.payload)
            self._insert(granted, newest)
            return refusals

    def reservations(self, run_id: str | None) -> Sequence[Entry]:
        """Return the ``spend.reserved`` entries of *run_id*, or of all runs, that are not settled, released or lost, oldest first."""
        with self._lock, self._errors():
            return [self._row(seq) for seq in Spending(self._connection).open(run_id)]

    def take_lease(self, run_id: str, owner: str, seconds: float, dead: Callable[[Lease], bool]) -> Lease | None:
        """Take the lease of a run for *seconds*, and return None; or return the lease that blocks it, which is neither over nor *dead*."""
        with self._transaction(fenced=False):
            return self._leases.take(run_id, owner, seconds, dead)

    def renew_lease(self) -> None:
        """Renew the lease that this live object holds, as each append does.

        :raises LedgerError: when another owner has taken it.
        """
        with self._transaction():
            pass

    def release_lease(self) -> None:
        """Give back the lease of this live ledger. A lost lease is ignored."""
        with self._transaction(fenced=False):
            self._leases.give_back()

    def lease_of(self, run_id: str) -> Lease | None:
        """Return the newest lease of a run; None if it never had a lease."""
        with self._lock, self._errors():
            return self._leases.of(run_id)

    def _append(self, events: Sequence[Event], spending: Spending) -> Head:
        newest = chain.head(self._connection) or Head(0, chain.START)
        self._columns.catch_up(newest.seq, self._entry)
        for seq, event in enumerate(events, newest.seq + 1):
            if event.type.startswith("spend."):
                spending.record(seq, event.run_id, event.type, event.payload)
        return self._insert(events, newest)

    def _insert(self, events: Sequence[Event], newest: Head) -> Head:
        if not events:
            return newest
        first = newest.seq + 1
        rows, last = self._rows(events, newest), newest
        while together := list(islice(rows, _TOGETHER)):
            last = Head(together[-1][0], together[-1][-1])
            if len(together) == _TOGETHER:
                self._connection.execute(_INSERT_TOGETHER, list(chained.from_iterable(together)))
            else:
                self._connection.executemany(_INSERT, together)
        self._connection.executemany(
            # bounds for reading: they are wider than necessary if a batch holds several runs
            "INSERT INTO runs VALUES (?, ?, ?) ON CONFLICT (run_id) DO UPDATE SET last_seq = excluded.last_seq",
            [(run_id, first, last.seq) for run_id in {event.run_id for event in events}],
        )
        self._columns.add(events if self._store_content else list(map(_as_stored, events)), first)
        return last

    def _rows(self, events: Sequence[Event], newest: Head) -> Iterator[chain.Row]:
        """Yield the rows of *events* after *newest*. The code is flat, because it runs for every event of every run."""
        link, dumps, stores_content = self._link, orjson.dumps, self._store_content
        seq, digest = newest.seq, newest.digest
        stored = self._known_contents(events, seq + 1)
        for event in events:
            seq, prev, payload, id, run_id = seq + 1, digest, event.payload, event.id, event.run_id
            session, subject, kind = event.session_id, event.subject_id, event.subject_kind
            sensitivity, time, turn, type = event.sensitivity, event.time, event.turn_id, event.type
            try:
                if seq in stored:
                    payload = {**payload, "content": None}
                elif not stores_content:
                    payload = without_texts(event, plain)
                body = dumps(payload, plain)
                values = (id, type, time, run_id, session, turn, kind, subject, sensitivity)
                digest = link(prev, values, body)
            except TypeError as error:
                raise LedgerError(f"event {id} ({type}) cannot be written as JSON: {error}") from error
            yield seq, *values, body.decode(), prev, digest

    def _known_contents(self, events: Sequence[Event], start: int) -> set[int]:
        """Return the rows, counted from *start*, that are written without their content."""
        read = {seq: event.payload for seq, event in enumerate(events, start) if event.type == "subject.read"}
        return known_contents(self._connection, read) if self._store_content else set(read)

    def _entry(self, connection: sqlite3.Connection, row: chain.Row) -> Entry:
        seq, id, type, time, run_id, session, turn, kind, subject, sensitivity, _, prev, digest = row
        loaded = chain.payload_of(row, self.path)
        if type in _VERIFIED_TYPES:
            chain.refuse_changed(row, self._link, self.path)
        if type == "subject.read" and loaded.get("content") is None:
            loaded["content"] = stored_content(connection, self.path, loaded)
        event = Event(id, type, time, run_id, loaded, session, turn, kind, subject, sensitivity)
        return Entry(seq, event, prev, digest)

    def _row(self, seq: int) -> Entry:
        row = self._connection.execute(f"SELECT {chain.ROW} FROM events WHERE seq = ?", (seq,)).fetchone()
        if row is None:
            raise LedgerError(f"row {seq} of {self.path} is missing: run dicast ledger verify")
        return self._entry(self._connection, row)

    @contextmanager
    def _transaction(self, *, fenced: bool = True) -> Iterator[Spending]:
        """Open a transaction. With *fenced* it is refused if this live ledger has lost its lease."""
        with self._lock, self._errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                if fenced:
                    self._leases.check()
                spending = Spending(self._connection)
                yield spending
                spending.write()
                self._connection.execute("COMMIT")
            except BaseException:
                self._columns.forget()  # its state in memory may not be in the file
                # SQLite has ended the transaction itself after some errors, such as a full disk.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        """Open a separate connection that sees one state of the ledger; later appends do not change it."""
        with self._errors(), self._connected() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection that no other reader uses. Opening one takes as long as a small read, so connections are reused."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = connect(self.path, self._timeout)
            connection.execute("PRAGMA query_only = 1")
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if self._closed:
            connection.close()
        else:
            self._idle.append(connection)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise LedgerError(explain(self.path, error, self._timeout)) from error


def _as_stored(event: Event) -> Event:
    """Return *event* as a ledger without texts stores it, because columns hold only facts of the chain."""
    return event if event.type == "subject.read" else attrs.evolve(event, payload=without_texts(event, plain))


def _amount(event: Event) -> tuple[Decimal, str]:
    try:
        return amount_of(event.payload), str(event.payload["unit"])
    except (KeyError, ArithmeticError, TypeError, ValueError) as error:
        raise LedgerError(
            f"event {event.id} has no valid amount to reserve, {error!r}: {dict(event.payload)}"
        ) from error
