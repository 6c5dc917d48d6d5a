"""Cache of a ledger's columns. Every answer about all verdicts is computed from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

from dicast import Head, Ledger
from dicast.reading import ActivityColumns, Names, VerdictColumns, read_activity, read_verdicts

from .tables import Tables


class Columns:
    """Verdicts of a ledger at a single head, and the *tables* of its runs."""

    def __init__(self) -> None:
        self.tables = Tables()
        self._head: Head | None = None
        self._judged: VerdictColumns | None = None
        self._lock = Lock()

    def get(self, head: Head | None, read: Callable[[], VerdictColumns]) -> VerdictColumns:
        """Return the result of *read*, cached for this *head*."""
        with self._lock:
            if self._judged is None or head != self._head:
                self._judged = None  # freed first: both columns at once would take twice the memory
                self._head, self._judged = head, read()
            return self._judged

    def names(self, head: Head | None) -> Names | None:
        """Return the names in the verdicts cached for this *head*, else None."""
        columns = self._judged
        return None if columns is None or head != self._head else columns.names


class CachedLedger:
    """Ledger that reads the columns of all its verdicts once. Other attributes are the wrapped ledger's.

    *head* is read before the columns, so the columns may include later rows. The next request then has another head and reads them again.
    """

    def __init__(self, ledger: Ledger, columns: Columns, head: Head | None) -> None:
        self._ledger, self._columns, self._head = ledger, columns, head
        self.tables = columns.tables

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def verdict_columns(self, run_id: str | None) -> VerdictColumns:
        """Return the verdicts and failures."""
        if run_id is not None:
            return read_verdicts(self._ledger, run_id)
        return self._columns.get(self._head, lambda: read_verdicts(self._ledger))

    def pricing_version(self, run_id: str | None) -> str | None:
        """Return the version of the price list of the newest verdict that has one."""
        return self.verdict_columns(run_id).pricing_version

    def activity_columns(self, run_id: str | None, types: Sequence[str]) -> ActivityColumns:
        """Return recorded events of *types*. They share the names of the cached verdicts if both are equal."""
        events = read_activity(self._ledger, run_id, types)
        names = None if run_id is not None else self._columns.names(self._head)
        if names is not None and names.hashes and names.hashes == events.names.hashes:
            events.names = names
        return events
