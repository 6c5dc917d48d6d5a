"""Cache of a ledger's columns. Every answer about all verdicts is computed from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, TypeVar

from dicast import Entry, Head, Ledger
from dicast.reading import (
    ActivityColumns,
    Names,
    VerdictColumns,
    read_activity,
    read_open_judgments,
    read_verdicts,
)

from .tables import Tables

T = TypeVar("T")


class Columns:
    """Verdicts and open judgments of a ledger at a single head, and the *tables* of its runs."""

    def __init__(self) -> None:
        self.tables = Tables()
        self._head: Head | None = None
        self._results: dict[object, Any] = {}
        self._lock = Lock()

    def get(self, head: Head | None, read: Callable[[Ledger], T], ledger: Ledger) -> T:
        """Return the result of *read* of *ledger*, cached for this *head*."""
        with self._lock:
            if head != self._head:
                self._results.clear()  # freed first: both columns at once would take twice the memory
                self._head = head
            if read not in self._results:
                self._results[read] = read(ledger)
            result: T = self._results[read]
            return result

    def names(self, head: Head | None) -> Names | None:
        """Return the names in the verdicts cached for this *head*, else None."""
        columns: VerdictColumns | None = self._results.get(read_verdicts)
        return None if columns is None or head != self._head else columns.names


class CachedLedger:
    """Ledger that reads the columns of all its verdicts and its open judgments once. Other attributes are the wrapped ledger's.

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
        return self._columns.get(self._head, read_verdicts, self._ledger)

    def open_judgments(self, run_id: str | None) -> Sequence[Entry]:
        """Return the started judgments without a verdict or failure."""
        if run_id is not None:
            return read_open_judgments(self._ledger, run_id)
        return self._columns.get(self._head, read_open_judgments, self._ledger)

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
