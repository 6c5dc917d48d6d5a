"""Who carries out which run: the table ``leases``, a row a run, beside the chain.

The rule:

- A lease that is taken gets the token after the one before, so a token names one owner.
- It is over at its *until*, by this ledger's clock; it is given back by making it end at once.
- While its token stands in the table its owner may append, and that renews it, also where it is over and nobody took it.
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
_ENDED = ""
"""The *until* of a lease that was given back."""

_FRESH = 2 / 3
"""The share of a lease that is left when an append renews it: a write each third of it, and not for each batch."""


@attrs.define
class Held:
    """The lease that a live ledger holds: *until* in seconds since the epoch."""

    run_id: str
    token: int
    seconds: float
    until: float


class Leases:
    """The leases of a ledger, and the one that this live object of it holds. Called inside transactions.

    *clock* gives the seconds since the epoch.
    """

    def __init__(self, connection: sqlite3.Connection, clock: Callable[[], float] = time.time) -> None:
        self._connection, self._clock = connection, clock
        self._held: Held | None = None

    def now(self) -> str:
        """The time by the ledger's clock, to be compared with *until* as text."""
        return _text(self._clock())

    def of(self, run_id: str) -> Lease | None:
        """The newest lease of the run; None where it never had one."""
        query = "SELECT run_id, token, owner, until FROM leases WHERE run_id = ?"
        row = self._connection.execute(query, (run_id,)).fetchone()
        return None if row is None else Lease(row[0], row[1], row[2], row[3], row[3] < self.now())

    def take(self, run_id: str, owner: str, seconds: float, dead: Callable[[Lease], bool]) -> Lease | None:
        """Take the lease of the run; return the one that is in the way, or None."""
        before = self.of(run_id)
        if before is not None and not before.over and not dead(before):
            return before
        until = self._clock() + seconds
        token = 1 if before is None else before.token + 1
        row = run_id, token, owner, _text(until)
        self._connection.execute("INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?)", row)
        self._held = Held(run_id, token, seconds, until)
        return None

    def check(self) -> None:
        """Renew the lease that is held, where it is due.

        :raises LedgerError: when another owner has taken it.
        """
        held = self._held
        if held is None:
            return
        query = "SELECT token FROM leases WHERE run_id = ?"
        row = self._connection.execute(query, (held.run_id,)).fetchone()
        if row != (held.token,):
            raise LedgerError(
                f"run {held.run_id} has lost its lease, which lasted until {_text(held.until)}: another process has taken "
                "the run up. What was recorded stays; nothing more of this process is recorded"
            )
        now = self._clock()
        if held.until - now < held.seconds * _FRESH:
            until = now + held.seconds
            update = "UPDATE leases SET until = ? WHERE run_id = ?"
            self._connection.execute(update, (_text(until), held.run_id))
            held.until = until

    def give_back(self) -> None:
        """End the lease that is held, if it is still this one's.

        Of a run without a row nothing is left, unless it had an owner before: that one's token is not given out again.
        """
        held, self._held = self._held, None
        if held is not None:
            mine = held.run_id, held.token
            self._connection.execute(
                "DELETE FROM leases WHERE run_id = ? AND token = ? AND token = 1"
                " AND run_id NOT IN (SELECT run_id FROM runs)",
                mine,
            )
            update = "UPDATE leases SET until = ? WHERE run_id = ? AND token = ?"
            self._connection.execute(update, (_ENDED, *mine))


def _text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
