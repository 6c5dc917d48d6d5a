"""The readings of a live ledger: from its columns, and from the chain for rows that the columns do not cover."""

from __future__ import annotations

import sqlite3
import threading
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from dicast import Entry, Query
from dicast.reading import ActivityColumns, Names, VerdictColumns, still_open

from . import chain
from .columns import EVALS, JUDGED, covered
from .lines import read_activity_columns, read_spent, read_verdict_columns, some_names
from .naming import extend_names
from .selection import bounds_of, select
from .spent import Spent

MakeEntry = Callable[[sqlite3.Connection, tuple[Any, ...]], Entry]


class Readings:
    """Reads over connections of *reader*; *entry* makes the entry of a row of the chain."""

    def __init__(self, reader: Callable[[], AbstractContextManager[sqlite3.Connection]], entry: MakeEntry) -> None:
        self._reader, self._entry = reader, entry
        self._names, self._lock = Names(), threading.Lock()

    def forget(self) -> None:
        """Release the names."""
        self._names = Names()

    def _all_names(self, connection: sqlite3.Connection, numbers: array[int]) -> Names:
        """Return the names of the ledger. They are read once, and all readings share them."""
        with self._lock:
            extend_names(connection, self._names)
            return self._names

    def verdict_columns(self, run_id: str | None = None) -> VerdictColumns:
        """Return the verdicts and failures of the ledger, or of one run: from the columns, and from the chain for later rows.

        :raises LedgerError: if the file cannot be read.
        """
        with self._reader() as connection:
            bounds = bounds_of(connection, run_id)
            if bounds is None:
                return VerdictColumns()
            upto, _ = covered(connection)
            named = self._all_names if run_id is None else some_names
            columns = read_verdict_columns(connection, bounds, named) if upto else VerdictColumns()
            columns.add(self._behind(connection, Query(run_id, JUDGED.types, after=upto)))
        return columns if run_id is None else columns.of_run(run_id)

    def activity_columns(self, run_id: str | None, types: Sequence[str]) -> ActivityColumns:
        """Return the events of *types* of the ledger or of one run, as columns.

        :raises LedgerError: if the file cannot be read.
        """
        with self._reader() as connection:
            bounds = bounds_of(connection, run_id)
            if bounds is None:
                return ActivityColumns()
            upto, _ = covered(connection)
            named = self._all_names if run_id is None else some_names
            columns = read_activity_columns(connection, bounds, types, named) if upto else ActivityColumns()
            columns.add(self._behind(connection, Query(run_id, tuple(types), after=upto)))
        return columns.of(run_id, types)

    def spent(self, run_id: str | None = None, *, sessions: bool = True) -> Spent | None:
        """Return the spending of the ledger, or of one run, which may include other runs; None if the columns do not cover the whole chain.

        Without *sessions* the result has no names of sessions.

        :raises LedgerError: if the file cannot be read.
        """
        with self._reader() as connection:
            bounds, newest = bounds_of(connection, run_id), chain.head(connection)
            upto, odd = covered(connection)
            if bounds is None or newest is None or upto < newest.seq or odd:
                return None
            named = self._all_names if run_id is None else some_names
            return read_spent(connection, bounds, named if sessions else None)

    def open_judgments(self, run_id: str | None = None) -> Sequence[Entry]:
        """Return the ``eval.started`` entries of the ledger, or of one run, without a verdict or failure yet, oldest first.

        :raises LedgerError: if the file cannot be read.
        """
        with self._reader() as connection:
            upto, _ = covered(connection)
            rows = f"SELECT {chain.ROW} FROM events WHERE seq IN (SELECT seq FROM begun) ORDER BY seq"
            before = [self._entry(connection, row) for row in connection.execute(rows)] if upto else []
            columns = still_open(before, self._behind(connection, Query(types=EVALS, after=upto)))
        return [entry for entry in columns if run_id in (None, entry.event.run_id)]

    def _behind(self, connection: sqlite3.Connection, query: Query) -> Iterator[Entry]:
        """Yield the rows of *query* in the chain. Nothing is read if the columns cover the whole chain."""
        newest = chain.head(connection)
        if newest is None or newest.seq <= query.after:
            return
        statement = select(connection, query)
        for row in connection.execute(*statement) if statement is not None else ():
            yield self._entry(connection, row)
