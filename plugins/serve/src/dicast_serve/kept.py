"""The columns of a ledger, kept as long as it stands still: every answer about all verdicts is made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

from dicast import Head, Ledger
from dicast.reading import ActivityColumns, Names, VerdictColumns, read_activity, read_verdicts


class Columns:
    """The verdicts of a ledger, for one of its heads alone."""

    def __init__(self) -> None:
        self._head: Head | None = None
        self._found: VerdictColumns | None = None
        self._lock = Lock()

    def get(self, head: Head | None, read: Callable[[], VerdictColumns]) -> VerdictColumns:
        """What *read* found when it was asked at this *head* first."""
        with self._lock:
            if self._found is None or head != self._head:
                self._found = None  # before the others are there, too: together they would take twice the memory
                self._head, self._found = head, read()
            return self._found

    def names(self, head: Head | None) -> Names | None:
        """The names of the verdicts, where these were asked for at this *head*."""
        found = self._found
        return None if found is None or head != self._head else found.names


class Remembering:
    """A ledger that reads the columns of all its verdicts once; it has what the ledger has besides.

    *head* was read before the columns, so these may go further: then the next head is another one, and they are read anew.
    """

    def __init__(self, ledger: Ledger, columns: Columns, head: Head | None) -> None:
        self._ledger, self._columns, self._head = ledger, columns, head

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def verdict_columns(self, run_id: str | None) -> VerdictColumns:
        """The verdicts and failures."""
        if run_id is not None:
            return read_verdicts(self._ledger, run_id)
        return self._columns.get(self._head, lambda: read_verdicts(self._ledger))

    def activity_columns(self, run_id: str | None, types: Sequence[str]) -> ActivityColumns:
        """What was told, with the names that the verdicts have, where they are the same."""
        found = read_activity(self._ledger, run_id, types)
        names = None if run_id is not None else self._columns.names(self._head)
        if names is not None and names.hashes and names.hashes == found.names.hashes:
            found.names = names
        return found
