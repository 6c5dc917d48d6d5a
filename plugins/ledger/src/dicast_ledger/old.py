"""Ledgers of formats 2 and 3: they are read, verified and converted, but not written on."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import orjson

from dicast import Claim, Entry, Event, Head, Lease, LedgerError, Query, Refusal, Verification

from . import old_chain
from .file import refusal_of
from .opened import Opened
from .spending import Spending

_VERIFIED_TYPES = frozenset(("run.started", "run.completed", "run.stopped"))
"""Types whose rows are checked against their digest when they are read: they are few, and every reader depends on them."""


class OldLedger(Opened):
    """An open ledger of format 2 or 3."""

    def __init__(self, path: Path, connection: sqlite3.Connection, *, store_content: bool, timeout: float) -> None:
        super().__init__(path, connection, store_content=store_content, timeout=timeout)
        (self.number,) = connection.execute("PRAGMA user_version").fetchone()
        self._link = old_chain.LINKS[self.number]

    def append(self, events: Sequence[Event]) -> Head:
        """Refuse to write.

        :raises LedgerRefused: always.
        """
        raise refusal_of(self.path, self.number)

    def reserve(
        self, claims: Sequence[Claim], lost: Callable[[Entry], Event], before: Sequence[Event] = ()
    ) -> Sequence[Refusal | None]:
        """Refuse to write.

        :raises LedgerRefused: always.
        """
        raise refusal_of(self.path, self.number)

    def lease_of(self, run_id: str) -> Lease | None:
        """Return the newest lease of a run; None if it never had a lease."""
        with self._lock, self._errors():
            return self._leases.of(run_id) if old_chain.has_table(self._connection, "leases") else None

    def read(self, query: Query) -> Iterator[Entry]:
        """Yield the rows that match *query*.

        ``query.until`` is compared as text: give it in the form of the events' times.

        :raises LedgerError: when the file cannot be read.
        """
        with self._reader() as connection:
            for row in connection.execute(*_select(connection, query)):
                yield self._entry(connection, row)

    def head(self) -> Head | None:
        """Return the newest row, or None for an empty ledger."""
        with self._reader() as connection:
            row = connection.execute("SELECT seq, digest FROM events ORDER BY seq DESC LIMIT 1").fetchone()
            return None if row is None else Head(*row)

    def verify(self, head: str | None = None) -> Verification:
        """Check the whole chain, and the tables that readers use; with *head*, also that a row has this digest."""
        with self._reader() as connection:
            connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
            try:
                return old_chain.verify(connection, head)
            finally:
                connection.text_factory = str

    def reservations(self, run_id: str | None) -> Sequence[Entry]:
        """Return the ``spend.reserved`` entries of *run_id*, or of all runs, that are not settled, released or lost, oldest first."""
        with self._reader() as connection:
            query = f"SELECT {old_chain.ROW} FROM events WHERE seq = ?"
            seqs = Spending(connection).open(run_id)
            return [self._entry(connection, row) for seq in seqs for row in connection.execute(query, (seq,))]

    def _forget(self) -> None:
        """Nothing is in memory."""

    def _transaction(self, *, fenced: bool = True) -> NoReturn:
        raise refusal_of(self.path, self.number)

    def _entry(self, connection: sqlite3.Connection, row: old_chain.Row) -> Entry:
        seq, id_, type_, time, run_id, session, turn, kind, subject, sensitivity, _, prev, digest = row
        loaded = old_chain.payload_of(row, self.path)
        if type_ in _VERIFIED_TYPES:
            old_chain.refuse_changed(row, self._link, self.path)
        if type_ == "subject.read" and loaded.get("content") is None:
            loaded["content"] = self._content(connection, loaded)
        event = Event(id_, type_, time, run_id, loaded, session, turn, kind, subject, sensitivity)
        return Entry(seq, event, prev, digest)

    def _content(self, connection: sqlite3.Connection, payload: dict[str, object]) -> object:
        """Return the content that an earlier row has; None if the ledger stores no contents."""
        key = old_chain.key_of(payload)
        query = "SELECT payload FROM events WHERE seq = (SELECT seq FROM contents WHERE key = ?)"
        row = connection.execute(query, (key,)).fetchone()
        if row is None:
            return None
        first = orjson.loads(row[0])
        if first["digest"] != payload["digest"]:
            raise LedgerError(
                f"the contents table of {self.path} names a row with another content than {payload['digest']}: "
                "run dicast ledger verify"
            )
        return first["content"]


def _select(connection: sqlite3.Connection, query: Query) -> tuple[str, list[object]]:
    """Return the statement that reads the rows of *query*, with its values."""
    conditions = {
        "run_id = ?": query.run_id,
        "subject_kind = ?": query.subject_kind,
        "subject_id = ?": query.subject_id,
        "session_id = ?": query.session_id,
        "time <= ?": query.until,
        "seq > ?": query.after or None,
    }
    chosen = {condition: value for condition, value in conditions.items() if value is not None}
    texts, values = list(chosen), list[object](chosen.values())
    if query.run_id is not None:
        statement = "SELECT first_seq, last_seq FROM runs WHERE run_id = ?"
        texts.append("seq BETWEEN ? AND ?")
        values += connection.execute(statement, (query.run_id,)).fetchone() or (0, 0)
    if query.types:
        is_about_runs = all(type_.startswith("run.") for type_ in query.types)
        # the plus keeps SQLite from sorting all rows of a type; the index of runs is small
        texts.append(f"{'' if is_about_runs else '+'}type IN ({', '.join('?' * len(query.types))})")
        values += query.types
        if is_about_runs:
            texts.append("type >= 'run.' AND type < 'run/'")
    where = f"WHERE {' AND '.join(texts)}" if texts else ""
    order, limit = "DESC" if query.newest_first else "ASC", -1 if query.limit is None else query.limit
    return f"SELECT {old_chain.ROW} FROM events {where} ORDER BY seq {order} LIMIT {limit:d}", values
