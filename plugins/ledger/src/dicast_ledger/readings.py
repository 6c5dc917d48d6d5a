"""What a live ledger reads from its columns, and from the chain where they do not go to its end."""

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
from .naming import keep_names
from .selection import bounds_of, select
from .spent import Spent

MakeEntry = Callable[[sqlite3.Connection, tuple[Any, ...]], Entry]


class Readings:
    """Reads over connections of *reader*; *entry* makes the entry of a row of the chain."""

    def __init__(self, reader: Callable[[], AbstractContextManager[sqlite3.Connection]], entry: MakeEntry) -> None:
        self._reader, self._entry = reader, entry
        self._names, self._lock = Names(), threading.Lock()

    def forget(self) -> None:
        """Let go of the names."""
        self._names = Names()

    def _all_names(self, connection: sqlite3.Connection, numbers: array[int]) -> Names:
        """The names of the ledger, which readings share: they are read once."""
        with self._lock:
            keep_names(connection, self._names)
            return self._names

    def verdict_columns(self, run_id: str | None = None) -> VerdictColumns:
        """The verdicts and failures of the ledger, or of one run, from the columns and, behind these, from the chain.

        :raises LedgerError: when the file cannot be read.
        """
        with self._reader() as connection:
            bounds = bounds_of(connection, run_id)
            if bounds is None:
                return VerdictColumns()
            upto, _ = covered(connection)
            named = self._all_names if run_id is None else some_names
            found = read_verdict_columns(connection, bounds, named) if upto else VerdictColumns()
            found.add(self._behind(connection, Query(run_id, JUDGED.types, after=upto)))
        return found if run_id is None else found.of_run(run_id)

    def activity_columns(self, run_id: str | None, types: Sequence[str]) -> ActivityColumns:
        """What the ledger, or one run, has of the events of *types*, likewise.

        :raises LedgerError: when the file cannot be read.
        """
        with self._reader() as connection:
            bounds = bounds_of(connection, run_id)
            if bounds is None:
                return ActivityColumns()
            upto, _ = covered(connection)
            named = self._all_names if run_id is None else some_names
            found = read_activity_columns(connection, bounds, types, named) if upto else ActivityColumns()
            found.add(self._behind(connection, Query(run_id, tuple(types), after=upto)))
        return found.of(run_id, types)

    def spent(self, run_id: str | None = None, *, sessions: bool = True) -> Spent | None:
        """What was spent in the ledger, or in one run and perhaps some others; None where the columns do not go to the end of the chain.

        Without *sessions* it does not say of which.

        :raises LedgerError: when the file cannot be read.
        """
        with self._reader() as connection:
            bounds, newest = bounds_of(connection, run_id), chain.head(connection)
            upto, odd = covered(connection)
            if bounds is None or newest is None or upto < newest.seq or odd:
                return None
            named = self._all_names if run_id is None else some_names
            return read_spent(connection, bounds, named if sessions else None)

    def open_judgments(self, run_id: str | None = None) -> Sequence[Entry]:
        """The ``eval.started`` entries of the ledger, or of one run, of verdicts that have neither come nor failed, oldest first.

        :raises LedgerError: when the file cannot be read.
        """
        with self._reader() as connection:
            upto, _ = covered(connection)
            rows = f"SELECT {chain.ROW} FROM events WHERE seq IN (SELECT seq FROM begun) ORDER BY seq"
            before = [self._entry(connection, row) for row in connection.execute(rows)] if upto else []
            found = still_open(before, self._behind(connection, Query(types=EVALS, after=upto)))
        return [entry for entry in found if run_id in (None, entry.event.run_id)]

    def _behind(self, connection: sqlite3.Connection, query: Query) -> Iterator[Entry]:
        """The rows of *query* in the chain; without looking for them where the columns go up to its end."""
        newest = chain.head(connection)
        if newest is None or newest.seq <= query.after:
            return
        statement = select(connection, query)
        for row in connection.execute(*statement) if statement is not None else ():
            yield self._entry(connection, row)
