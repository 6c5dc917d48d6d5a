"""The columns of a ledger, kept as long as it stands still: every answer about all verdicts is made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

from dicast import Ledger
from dicast.reading import READ, Judged, Names, Told, judged, told


class Columns:
    """What was read of a ledger, for its newest head alone."""

    def __init__(self) -> None:
        self._head: object = None
        self._found: dict[object, Any] = {}
        self._lock = Lock()

    def get(self, head: object, what: object, read: Callable[[], Any]) -> Any:
        """What *read* found when it was asked for *what* at this *head* first."""
        with self._lock:
            if head != self._head:
                self._head, self._found = head, {}
            if what not in self._found:
                self._found[what] = read()
            return self._found[what]

    def names(self, head: object) -> Names | None:
        """The names of the verdicts, where these were asked for at this *head*."""
        found = self._found.get(("judged",)) if head == self._head else None
        return None if found is None else found.names


class Remembering:
    """A ledger that reads its columns of all runs once; it has what the ledger has besides.

    Its head was read before the columns, so these may go further: then the next head is another one, and they are read anew.
    """

    def __init__(self, ledger: Ledger, columns: Columns) -> None:
        self._ledger, self._columns = ledger, columns
        self._head = ledger.head()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def judged(self, run_id: str | None) -> Judged:
        """The verdicts and failures."""
        found: Judged = self._read(run_id, ("judged",), lambda: judged(self._ledger, run_id))
        return found

    def told(self, run_id: str | None, types: Sequence[str]) -> Told:
        """What was told; of what was read only the names are kept, of models all."""
        if READ in types:
            return self._shared(run_id, told(self._ledger, run_id, types))
        found: Told = self._read(
            run_id, ("told", *types), lambda: self._shared(run_id, told(self._ledger, run_id, types))
        )
        return found

    def _shared(self, run_id: str | None, found: Told) -> Told:
        """*found* with the names that the verdicts have, where they are the same."""
        names = None if run_id is not None else self._columns.names(self._head)
        if names is not None and names.marks and names.marks == found.names.marks:
            found.names = names
        return found

    def _read(self, run_id: str | None, what: object, read: Callable[[], Any]) -> Any:
        return read() if run_id is not None else self._columns.get(self._head, what, read)
