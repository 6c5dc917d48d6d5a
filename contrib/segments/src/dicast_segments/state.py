"""State of a ledger after a commit: it follows from the commits, and each segment has the state at its end."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby

import attrs
import orjson

from dicast import Lease
from dicast.toolkit.ledger_lines import START

from .commits import Commit, LeaseChange
from .lines import Row
from .money import Money

NO_TIME = ""
"""The end of a released lease."""


@attrs.define
class State:
    """The number of the newest commit, the number and the digest of the newest event, the amounts, the leases, and the first and last events of runs."""

    commit: int = 0
    seq: int = 0
    digest: bytes = START
    money: Money = attrs.field(factory=Money)
    leases: dict[str, tuple[int, str, str]] = attrs.field(factory=dict)
    runs: dict[str, tuple[int, int]] = attrs.field(factory=dict)

    def record(self, rows: Iterable[Row]) -> None:
        """Apply the amounts of *rows*, which follow the newest event. They may be undone until :meth:`add`."""
        for seq, row in enumerate(rows, self.seq + 1):
            if row.columns[1].startswith("spend."):
                self.money.record(seq, row, row.event().payload)

    def add(self, commit: Commit) -> None:
        """Apply a commit whose amounts are recorded."""
        self.money.keep()
        self.bound((run_id, len([*rows])) for run_id, rows in groupby(row.columns[3] for row in commit.rows))
        self.change_leases(commit.leases)
        self.commit, self.seq, self.digest = commit.number, commit.last, commit.digest

    def bound(self, runs: Iterable[tuple[str, int]]) -> None:
        """Apply the bounds of the runs of the next events: each run with the number of its events, in their order."""
        seq = self.seq
        for run_id, count in runs:
            first, _ = self.runs.get(run_id, (seq + 1, 0))
            seq += count
            self.runs[run_id] = first, seq

    def change_leases(self, changes: Sequence[LeaseChange]) -> None:
        """Apply changes of leases. The first lease of a run without events is forgotten when it is released."""
        for run_id, token, owner, until in changes:
            if until == NO_TIME and token == 1 and run_id not in self.runs:
                self.leases.pop(run_id, None)
            else:
                self.leases[run_id] = token, owner, until

    def lease_of(self, run_id: str) -> Lease | None:
        """Return the newest lease of the run; None if it never had one."""
        lease = self.leases.get(run_id)
        if lease is None:
            return None
        token, owner, until = lease
        return Lease(run_id, token, owner, until, until < time_text(time.time()))

    def lease_end(self, run_id: str) -> str | None:
        """Return the end of the lease of a run; None if it never had one."""
        lease = self.leases.get(run_id)
        return None if lease is None else lease[2]

    def packed(self) -> bytes:
        """Return the state as JSON text; see :meth:`of`."""
        return orjson.dumps(
            {
                "commit": self.commit,
                "seq": self.seq,
                "digest": self.digest.hex(),
                "money": self.money.as_json(),
                "leases": sorted([run_id, *lease] for run_id, lease in self.leases.items()),
                "runs": sorted([run_id, *bounds] for run_id, bounds in self.runs.items()),
            }
        )

    @classmethod
    def of(cls, text: bytes) -> State:
        """Return the state of :meth:`packed`.

        :raises LookupError, TypeError, ValueError, ArithmeticError: if it has another form.
        """
        data = orjson.loads(text)
        leases = {run_id: (token, owner, until) for run_id, token, owner, until in data["leases"]}
        runs = {run_id: (first, last) for run_id, first, last in data["runs"]}
        digest = bytes.fromhex(data["digest"])
        return cls(data["commit"], data["seq"], digest, Money.of(data["money"]), leases, runs)


def time_text(seconds: float) -> str:
    """Return a time in seconds since the epoch as ISO 8601 text in UTC with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
