"""Spent and reserved amounts in tables next to the chain, so that a cap can be checked without reading the whole chain.

The rules, by event:

- ``spend.reserved`` opens a reservation: its amount counts as open in each of its scopes.
- ``spend.settled`` closes it and counts the actual amount, in its unit; for an amount of null the reserved amount counts.
- ``spend.released`` closes it and counts nothing.
- ``spend.lost`` closes it and counts as spent.
- After ``spend.lost``, a late ``settled`` or ``released`` replaces the lost amount; a second ``lost`` changes nothing.
- An event about an unknown reservation, or about one that is already settled or released, changes nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from itertools import zip_longest
from typing import Any

import attrs
import orjson

from dicast import Cap, LedgerError, Refusal
from dicast.toolkit.ledger_lines.amounts import amount_of, utc_moment

SPENDING_TABLES = """
CREATE TABLE reservations (
    id TEXT PRIMARY KEY, seq INTEGER, run_id TEXT, scopes TEXT, amount TEXT, unit TEXT, lease_until TEXT,
    outlives INTEGER) WITHOUT ROWID;
CREATE TABLE lost (id TEXT PRIMARY KEY, scopes TEXT, amount TEXT, unit TEXT) WITHOUT ROWID;
CREATE TABLE spend (scope TEXT, unit TEXT, amount TEXT, PRIMARY KEY (scope, unit)) WITHOUT ROWID;
CREATE TABLE held (scope TEXT, unit TEXT, amount TEXT, PRIMARY KEY (scope, unit)) WITHOUT ROWID;
"""


_LAPSED = "lease_until < :now"
_LEASE = "SELECT 1 FROM leases WHERE leases.run_id = reservations.run_id AND until"
_OVER, _OPEN = f"EXISTS ({_LEASE} < :ledgers_now)", f"EXISTS ({_LEASE} >= :ledgers_now)"

SUMS = 1_000
"""Most sums in memory, and most open reservations."""

_NEVER = "~"
"""Text after all times."""

Reservation = tuple[Sequence[str], Decimal, str]
"""The scopes, the amount and the unit."""


@attrs.frozen
class Calm:
    """Time in which no open reservation ends: until *lapse* by the clock of the run, and until *over* by the clock of the ledger. *runs* have open reservations."""

    lapse: str
    over: str
    runs: Collection[str]

    def lasts(self, now: str, ledgers_now: str) -> bool:
        """Return True if no reservation ends before *now*, and before *ledgers_now* by the clock of the ledger."""
        return now <= self.lapse and ledgers_now <= self.over

    def after(self, run_id: str, lease_until: str | None) -> Calm | None:
        """Return the time after a new reservation of a run; None if it is not known, because the run had none."""
        if run_id not in self.runs:
            return None
        return self if lease_until is None or lease_until >= self.lapse else attrs.evolve(self, lapse=lease_until)


class Spending:
    """The tables ``reservations`` (open ones) and ``lost``, with their sums: ``held`` and ``spend``, one row per scope and unit.

    It reads each sum once, and :meth:`write` writes the changed sums at the end of a transaction. Call :meth:`refresh` after another connection has
    written, and after a failed transaction.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._sums: dict[tuple[str, str, str], Decimal] = {}
        self._changed: dict[str, dict[tuple[str, str], None]] = {"held": {}, "spend": {}}
        self._open: dict[str, Reservation] = {}
        """Open reservations that this object has written."""
        self._calm: Calm | None = None
        self._is_read = False
        """True if :meth:`expired` has read all open reservations since the last refresh."""

    def refresh(self) -> None:
        """Forget all values in memory."""
        self._sums.clear()
        self._open.clear()
        self._calm, self._is_read = None, False
        for changed in self._changed.values():
            changed.clear()

    def write(self) -> None:
        """Write the changed sums."""
        for table, changed in self._changed.items():
            if changed:
                rows = [(scope, unit, _text(self._sums[table, scope, unit])) for scope, unit in changed]
                self._connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)", rows)
                changed.clear()

    def record(self, seq: int, run_id: str, kind: str, payload: Mapping[str, Any]) -> None:
        """Apply the event of type *kind* at *seq* to the sums.

        :raises LedgerError: for a second reservation with the same id, or a payload that does not have the form of its type.
        """
        try:
            if kind == "spend.reserved":
                self._reserve(seq, run_id, payload)
            elif kind in ("spend.settled", "spend.released", "spend.lost"):
                self._close(kind, payload)
        except (KeyError, TypeError, ValueError, InvalidOperation, sqlite3.IntegrityError) as error:
            raise LedgerError(f"cannot account for this {kind} event, {error!r}: {dict(payload)}") from error

    def expired(self, now: str, ledgers_now: str) -> list[int]:
        """Return the rows of the open reservations whose lease ended before *now*, or whose run's lease ended before *ledgers_now*; oldest first.

        A reservation that outlives its run, because the reply is in a batch, ends only after both leases are over.
        """
        moment = utc_moment(now)
        if self._calm is not None and self._calm.lasts(moment, ledgers_now):
            return []
        query = f"""SELECT seq FROM reservations WHERE {_LAPSED} AND NOT (outlives AND {_OPEN}) OR {_OVER} AND NOT outlives ORDER BY seq"""
        expired = [seq for (seq,) in self._connection.execute(query, {"now": moment, "ledgers_now": ledgers_now})]
        self._calm = self._read_calm() if self._is_read else None
        self._is_read = True
        return expired

    def _read_calm(self) -> Calm:
        ends = dict(self._connection.execute("SELECT run_id, min(lease_until) FROM reservations GROUP BY run_id"))
        query = "SELECT min(until) FROM leases WHERE run_id IN (SELECT run_id FROM reservations)"
        (over,) = self._connection.execute(query).fetchone()
        return Calm(min(filter(None, ends.values()), default=_NEVER), _NEVER if over is None else over, {*ends})

    def open(self, run_id: str | None) -> list[int]:
        """Return the rows of the open reservations of *run_id*, or of all runs, oldest first."""
        query = "SELECT seq FROM reservations WHERE run_id = :run_id OR :run_id IS NULL ORDER BY seq"
        rows = self._connection.execute(query, {"run_id": run_id})
        return [seq for (seq,) in rows]

    def exceeded(self, caps: Sequence[Cap], amount: Decimal, unit: str) -> Refusal | None:
        """Return the refusal of *amount* under *caps*, or None if every cap allows it.

        The refusal names the first cap that the spent amounts exceed, else the first cap that only open reservations exceed.
        """
        if not amount:
            return None
        waiting = None
        for cap in caps:
            if cap.limit.unit != unit or cap.limit.amount is None:
                continue
            needed = self._sum("spend", cap.scope, unit) + amount
            if needed > cap.limit.amount:
                return Refusal(cap, wait=False)
            if waiting is None and needed + self._sum("held", cap.scope, unit) > cap.limit.amount:
                waiting = Refusal(cap, wait=True)
        return waiting

    def differing(self, other: Spending) -> str | None:
        """Return the first difference of a row from the tables of *other* as text; None if all rows are equal."""
        for table in ("spend", "held", "reservations", "lost"):
            for mine, theirs in zip_longest(self._rows(table), other._rows(table)):
                if mine != theirs:
                    return f"{table}: {mine} instead of {theirs}"
        return None

    def _rows(self, table: str) -> Iterator[tuple[object, ...]]:
        return self._connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2")

    def _reserve(self, seq: int, run_id: str, payload: Mapping[str, Any]) -> None:
        scopes, lease = list(payload["scopes"]), payload.get("lease_until")
        amount, unit = amount_of(payload), payload["unit"]
        self._connection.execute(
            "INSERT INTO reservations VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                payload["reservation_id"],
                seq,
                run_id,
                orjson.dumps(scopes).decode(),
                _text(amount),
                unit,
                None if lease is None else utc_moment(lease),
                int(bool(payload.get("outlives_run"))),
            ),
        )
        if self._calm is not None:
            self._calm = self._calm.after(run_id, None if lease is None else utc_moment(lease))
        if len(self._open) >= SUMS:
            self._open.clear()
        self._open[payload["reservation_id"]] = scopes, amount, unit
        self._add("held", scopes, unit, amount)

    def _close(self, kind: str, payload: Mapping[str, Any]) -> None:
        reservation = payload["reservation_id"]
        lost = self._take("reservations", reservation)
        if lost is None:
            lost = None if kind == "spend.lost" else self._take("lost", reservation)
            if lost is None:
                return
            self._add("spend", lost[0], lost[2], -lost[1])
        else:
            self._add("held", lost[0], lost[2], -lost[1])
        if kind == "spend.released":
            return
        scopes, amount, unit = lost
        if payload.get("amount") is not None:
            amount, unit = amount_of(payload), payload["unit"]
        self._add("spend", scopes, unit, amount)
        if kind == "spend.lost":
            row = (reservation, orjson.dumps(scopes).decode(), _text(amount), unit)
            self._connection.execute("INSERT INTO lost VALUES (?, ?, ?, ?)", row)

    def _take(self, table: str, reservation: str) -> Reservation | None:
        taken = self._open.pop(reservation, None) if table == "reservations" else None
        if taken is None:
            query = f"SELECT scopes, amount, unit FROM {table} WHERE id = ?"
            row = self._connection.execute(query, (reservation,)).fetchone()
            if row is None:
                return None
            taken = orjson.loads(row[0]), Decimal(row[1]), row[2]
        is_taken = self._connection.execute(f"DELETE FROM {table} WHERE id = ?", (reservation,)).rowcount
        return taken if is_taken else None

    def _add(self, table: str, scopes: Sequence[str], unit: str, amount: Decimal) -> None:
        for scope in scopes:
            total = self._sum(table, scope, unit) + amount
            self._sums[table, scope, unit] = total
            self._changed[table][scope, unit] = None

    def _sum(self, table: str, scope: str, unit: str) -> Decimal:
        total = self._sums.get((table, scope, unit))
        if total is not None:
            return total
        if len(self._sums) >= SUMS:
            self.write()
            self._sums.clear()
        statement = f"SELECT amount FROM {table} WHERE scope = ? AND unit = ?"
        row = self._connection.execute(statement, (scope, unit)).fetchone()
        self._sums[table, scope, unit] = total = Decimal(row[0]) if row else Decimal(0)
        return total


def _text(amount: Decimal) -> str:
    """Return *amount* without an exponent. Its plain text takes a sixth of the time of a format."""
    text = str(amount)
    return f"{amount:f}" if "E" in text else text
