"""The owners of runs: the table ``leases`` next to the chain, one row per run.

The rules:

- A new lease has the next token after the last lease of the run, so a token names one owner.
- A lease is over at its *until*, by this ledger's clock. Releasing it ends it at once.
- The owner may append while its token is in the table. An append renews the lease, even if the lease is over and no other process took it.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from datetime import UTC, datetime

import attrs

from dicast import Lease, LedgerError

LEASES_TABLE = (
    "CREATE TABLE IF NOT EXISTS leases (run_id TEXT PRIMARY KEY, token INTEGER, owner TEXT, until TEXT) WITHOUT ROWID"
)
_ENDED_UNTIL = ""
"""The *until* of a released lease."""

_FRESH = 2 / 3
"""Remaining share of a lease below which an append renews it, so that it is written once in each third of its time and not in each batch."""


@attrs.define(eq=False)
class HeldLease:
    """The lease that a live ledger holds: *until* in seconds since the epoch."""

    run_id: str
    token: int
    seconds: float
    until: float


class Leases:
    """The leases of a ledger, and the lease that this live ledger holds. Its methods are called inside transactions.

    *clock* returns the seconds since the epoch.
    """

    def __init__(self, connection: sqlite3.Connection, clock: Callable[[], float] = time.time) -> None:
        self._connection, self._clock = connection, clock
        self._lease: HeldLease | None = None
        self._is_checked = False
        """True if the table has the token of the held lease, and no other connection has written since this was read."""

    def refresh(self) -> None:
        """Read the token of the held lease again before the next append."""
        self._is_checked = False

    def now(self) -> str:
        """Return the time of the ledger's clock as text, for a comparison with *until*."""
        return _text(self._clock())

    def of(self, run_id: str) -> Lease | None:
        """Return the newest lease of the run; None if it never had a lease."""
        query = "SELECT run_id, token, owner, until FROM leases WHERE run_id = ?"
        row = self._connection.execute(query, (run_id,)).fetchone()
        return None if row is None else Lease(row[0], row[1], row[2], row[3], row[3] < self.now())

    def take(self, run_id: str, owner: str, seconds: float, dead: Callable[[Lease], bool]) -> Lease | None:
        """Take the lease of the run, and return None; or return the lease of another owner that blocks it."""
        before = self.of(run_id)
        if before is not None and not before.over and not dead(before):
            return before
        until = self._clock() + seconds
        token = 1 if before is None else before.token + 1
        row = run_id, token, owner, _text(until)
        self._connection.execute("INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?)", row)
        self._lease, self._is_checked = HeldLease(run_id, token, seconds, until), False
        return None

    def check(self) -> None:
        """Renew the lease of this live ledger if it is due.

        :raises LedgerError: if another owner has taken the lease.
        """
        lease = self._lease
        if lease is None:
            return
        if not self._is_checked:
            query = "SELECT token FROM leases WHERE run_id = ?"
            row = self._connection.execute(query, (lease.run_id,)).fetchone()
            if row != (lease.token,):
                raise LedgerError(
                    f"run {lease.run_id} has lost its lease, which lasted until {_text(lease.until)}: another process has taken "
                    "over the run. The recorded events stay, and this process records nothing more"
                )
            self._is_checked = True
        now = self._clock()
        if lease.until - now < lease.seconds * _FRESH:
            until = now + lease.seconds
            update = "UPDATE leases SET until = ? WHERE run_id = ?"
            self._connection.execute(update, (_text(until), lease.run_id))
            lease.until = until

    def give_back(self) -> None:
        """End the lease that this object holds, unless another owner has taken it.

        For a run without events the row is deleted. It stays if the run had an earlier owner, so that no token is used twice.
        """
        lease, self._lease = self._lease, None
        if lease is not None:
            mine = lease.run_id, lease.token
            self._connection.execute(
                "DELETE FROM leases WHERE run_id = ? AND token = ? AND token = 1"
                " AND run_id NOT IN (SELECT run_id FROM runs)",
                mine,
            )
            update = "UPDATE leases SET until = ? WHERE run_id = ? AND token = ?"
            self._connection.execute(update, (_ENDED_UNTIL, *mine))


def _text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
