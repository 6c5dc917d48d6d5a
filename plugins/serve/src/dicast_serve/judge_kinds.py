"""Kinds of the judges of a ledger, by the names under which they judge."""

from __future__ import annotations

from threading import Lock

from dicast import Head, Ledger, Query
from dicast.reading import VerdictColumns, read_digest, read_verdicts

TYPES = ("eval.completed", "eval.failed")


class JudgeKinds:
    """The kinds of judges under each name. A later call reads only the rows that are newer than those of the call before."""

    def __init__(self) -> None:
        self._kinds: dict[str, set[str | None]] = {}
        self._head: Head | None = None
        self._lock = Lock()

    def of(self, ledger: Ledger, name: str | None) -> set[str | None]:
        """Return the kinds of the judges that have judged as *name*; None is the kind of a judge that has only failed."""
        with self._lock:
            head = ledger.head()
            if head != self._head:
                columns = self._newer(ledger, head)
                for origin in columns.origins:
                    self._kinds.setdefault(origin.judge, set()).add(origin.judge_kind)
                self._head = head
            return set() if name is None else set(self._kinds.get(name, ()))

    def _newer(self, ledger: Ledger, head: Head | None) -> VerdictColumns:
        """Return the verdicts since the last call, all of them if another ledger is in its place."""
        last = self._head
        if last is None or head is None or head.seq < last.seq or read_digest(ledger, last.seq) != last.digest:
            self._kinds = {}
            return read_verdicts(ledger)
        return VerdictColumns().add(ledger.read(Query(types=TYPES, after=last.seq)))
