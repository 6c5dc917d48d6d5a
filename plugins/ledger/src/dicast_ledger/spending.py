"""Spent and reserved amounts in tables next to the chain, so that a cap can be checked without reading the whole chain.

The tables count the events up to the number in ``counted``. A live ledger has the changes of its later events in memory, and other processes read them from the
lines after this event, which are few. So a small append writes no table of amounts.

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
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from itertools import zip_longest
from typing import Any

import attrs
import orjson

from dicast import Cap, LedgerError, Refusal
from dicast.toolkit.ledger_lines.amounts import amount_of, claim_refusal, utc_moment

SPENDING_TABLES = """
CREATE TABLE reservations (
    id TEXT PRIMARY KEY, seq INTEGER, run_id TEXT, scopes TEXT, amount TEXT, unit TEXT, lease_until TEXT,
    outlives INTEGER) WITHOUT ROWID;
CREATE TABLE lost (id TEXT PRIMARY KEY, scopes TEXT, amount TEXT, unit TEXT) WITHOUT ROWID;
CREATE TABLE spend (scope TEXT, unit TEXT, amount TEXT, PRIMARY KEY (scope, unit)) WITHOUT ROWID;
CREATE TABLE held (scope TEXT, unit TEXT, amount TEXT, PRIMARY KEY (scope, unit)) WITHOUT ROWID;
"""
COUNTED_TABLE = "CREATE TABLE counted (id INTEGER PRIMARY KEY, seq INTEGER)"
_COUNTED = 1
"""The id of the only row of ``counted``."""

AMOUNT_TABLES = ("spend", "held", "reservations", "lost")

_LAPSED = "lease_until < :now"
_LEASE = "SELECT 1 FROM leases WHERE leases.run_id = reservations.run_id AND until"
_OVER, _OPEN = f"EXISTS ({_LEASE} < :ledgers_now)", f"EXISTS ({_LEASE} >= :ledgers_now)"

SUMS = 1_000
"""Number of sums in memory from which they are written and forgotten, and most written reservations in memory."""

_NEVER = "~"
"""Text after all times."""

Reservation = tuple[Sequence[str], Decimal, str]
"""The scopes, the amount and the unit."""


@attrs.frozen(eq=False)
class Calm:
    """Time in which no open reservation ends: until *lapse* by the clock of the run, and until *over* by the clock of the ledger. The leases of *runs* end at *over* or later."""

    lapse: str
    over: str
    runs: Collection[str]

    def lasts(self, now: str, ledgers_now: str) -> bool:
        """Return True if no reservation ends before *now*, and before *ledgers_now* by the clock of the ledger."""
        return now <= self.lapse and ledgers_now <= self.over

    def after(self, run_id: str, lease_until: str | None, lease_of: Callable[[str], str | None]) -> Calm:
        """Return the time after a new reservation of a run. *lease_of* returns the end of the lease of a run."""
        calm = self
        if run_id not in self.runs:
            over = lease_of(run_id)
            calm = Calm(self.lapse, self.over if over is None else min(self.over, over), {*self.runs, run_id})
        return calm if lease_until is None or lease_until >= calm.lapse else attrs.evolve(calm, lapse=lease_until)


class _Rows:
    """Rows of ``reservations`` or ``lost``, with the changes that are not written yet."""

    def __init__(self, connection: sqlite3.Connection, table: str) -> None:
        self._connection, self._table = connection, table
        self._new: dict[str, tuple[Sequence[Any], Reservation]] = {}
        self._removed: set[str] = set()
        """Ids of written rows."""
        self._written: dict[str, Reservation] = {}
        """Reservations of rows that this object has written."""

    def clear(self) -> None:
        """Forget the changes."""
        self._new.clear()
        self._removed.clear()
        self._written.clear()

    def put(self, row: Sequence[Any], reservation: Reservation) -> None:
        """Add a row. Its first value is its id.

        :raises ValueError: if there is a row with this id.
        """
        id_, *values = row
        key = self._key(id_)
        if key is None or self._is_known(key):
            raise ValueError(f"there is another row of {self._table} with the id {id_!r}")
        self._new[key] = (key, *values), reservation

    def take(self, id_: object) -> Reservation | None:
        """Remove the row with this id, and return its reservation; None if there is no such row."""
        id_ = self._key(id_)
        if id_ is None:
            return None
        if (new := self._new.pop(id_, None)) is not None:
            return new[1]
        if id_ in self._removed:
            return None
        taken = self._written.pop(id_, None)
        if taken is None:
            query = f"SELECT scopes, amount, unit FROM {self._table} WHERE id = ?"
            row = self._connection.execute(query, (id_,)).fetchone()
            if row is None:
                return None
            taken = orjson.loads(row[0]), Decimal(row[1]), row[2]
        self._removed.add(id_)
        return taken

    def write(self) -> None:
        """Write the changes."""
        if self._removed:
            removed = [(id_,) for id_ in self._removed]
            self._connection.executemany(f"DELETE FROM {self._table} WHERE id = ?", removed)
            self._removed.clear()
        if self._new:
            rows = [row for row, _ in self._new.values()]
            self._connection.executemany(f"INSERT INTO {self._table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
            if len(self._written) >= SUMS:
                self._written.clear()
            self._written.update((id_, reservation) for id_, (_, reservation) in self._new.items())
            self._new.clear()

    def _key(self, id_: object) -> str | None:
        """Return the id as the table has it: a number is its text."""
        if id_ is None or type(id_) is str:
            return id_
        (key,) = self._connection.execute("SELECT CAST(? AS TEXT)", (id_,)).fetchone()
        return None if key is None else str(key)

    def _is_known(self, id_: str) -> bool:
        if id_ in self._new or id_ in self._written:
            return True
        if id_ in self._removed:
            return False
        return self._connection.execute(f"SELECT 1 FROM {self._table} WHERE id = ?", (id_,)).fetchone() is not None


class Spending:
    """The tables ``reservations`` (open ones) and ``lost``, with their sums: ``held`` and ``spend``, one row per scope and unit.

    It reads each sum once. Changes are in memory until :meth:`write`. Call :meth:`refresh` after another connection has
    written, and after a failed transaction.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._sums: dict[tuple[str, str, str], Decimal] = {}
        self._changed: dict[str, dict[tuple[str, str], None]] = {"held": {}, "spend": {}}
        self._open, self._lost = _Rows(connection, "reservations"), _Rows(connection, "lost")
        self._calm: Calm | None = None
        self._is_read = False
        """True if :meth:`expired` has read all open reservations since the last refresh."""

    def refresh(self) -> None:
        """Forget all values in memory."""
        self._sums.clear()
        self._open.clear()
        self._lost.clear()
        self.disturb()
        for changed in self._changed.values():
            changed.clear()

    def disturb(self) -> None:
        """Read the ends of the open reservations again, because the lease of a run has changed."""
        self._calm, self._is_read = None, False

    @property
    def is_large(self) -> bool:
        """True if so many sums are in memory that they are to be written."""
        return len(self._sums) >= SUMS

    def write(self) -> None:
        """Write the changes."""
        self._open.write()
        self._lost.write()
        for table, changed in self._changed.items():
            if changed:
                rows = [(scope, unit, _text(self._sums[table, scope, unit])) for scope, unit in changed]
                self._connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)", rows)
                changed.clear()
        if self.is_large:
            self._sums.clear()

    def count(self, seq: int) -> None:
        """Write the changes of the events up to *seq*, the number of the last event that was recorded."""
        self.write()
        self._connection.execute("INSERT OR REPLACE INTO counted VALUES (?, ?)", (_COUNTED, seq))

    def record(self, seq: int, run_id: str, kind: str, payload: Mapping[str, Any]) -> None:
        """Apply the event of type *kind* at *seq* to the sums.

        :raises LedgerError: for a second reservation with the same id, or a payload that does not have the form of its type.
        """
        try:
            if kind == "spend.reserved":
                self._reserve(seq, run_id, payload)
            elif kind in ("spend.settled", "spend.released", "spend.lost"):
                self._close(kind, payload)
        except (KeyError, TypeError, ValueError, InvalidOperation) as error:
            raise LedgerError(f"cannot account for this {kind} event, {error!r}: {dict(payload)}") from error

    def is_calm(self, now: str, ledgers_now: str) -> bool:
        """Return True if no open reservation is over."""
        return self._calm is not None and self._calm.lasts(utc_moment(now), ledgers_now)

    def expired(self, now: str, ledgers_now: str) -> list[int]:
        """Return the rows of the open reservations whose lease ended before *now*, or whose run's lease ended before *ledgers_now*; oldest first.

        A reservation that outlives its run, because the reply is in a batch, ends only after both leases are over. Changes must be written, unless :meth:`is_calm`.
        """
        moment = utc_moment(now)
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

    def _lease_of(self, run_id: str) -> str | None:
        row = self._connection.execute("SELECT until FROM leases WHERE run_id = ?", (run_id,)).fetchone()
        return None if row is None else row[0]

    def open(self, run_id: str | None) -> list[int]:
        """Return the rows of the open reservations of *run_id*, or of all runs, oldest first."""
        query = "SELECT seq FROM reservations WHERE run_id = :run_id OR :run_id IS NULL ORDER BY seq"
        rows = self._connection.execute(query, {"run_id": run_id})
        return [seq for (seq,) in rows]

    def exceeded(self, caps: Sequence[Cap], amount: Decimal, unit: str) -> Refusal | None:
        """Return the refusal of *amount* under *caps*, or None if every cap allows it."""
        return claim_refusal(caps, amount, unit, self._sum)

    def differing(self, other: Spending) -> str | None:
        """Return the first difference of a row from the tables of *other* as text; None if all rows are equal."""
        for table in AMOUNT_TABLES:
            for mine, theirs in zip_longest(self._rows(table), other._rows(table)):
                if mine != theirs:
                    return f"{table}: {mine} instead of {theirs}"
        return None

    def _rows(self, table: str) -> Iterator[tuple[object, ...]]:
        return self._connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2")

    def _reserve(self, seq: int, run_id: str, payload: Mapping[str, Any]) -> None:
        scopes, lease = list(payload["scopes"]), payload.get("lease_until")
        amount, unit = amount_of(payload), payload["unit"]
        if not all(isinstance(text, str) for text in (unit, *scopes)):
            raise TypeError(f"scopes and a unit are texts, not {scopes!r} and {unit!r}")
        until = None if lease is None else utc_moment(lease)
        text, outlives = orjson.dumps(scopes).decode(), int(bool(payload.get("outlives_run")))
        row = payload["reservation_id"], seq, run_id, text, _text(amount), unit, until, outlives
        self._open.put(row, (scopes, amount, unit))
        if self._calm is not None:
            self._calm = self._calm.after(run_id, until, self._lease_of)
        self._add("held", scopes, unit, amount)

    def _close(self, kind: str, payload: Mapping[str, Any]) -> None:
        reservation = payload["reservation_id"]
        lost = self._open.take(reservation)
        if lost is None:
            lost = None if kind == "spend.lost" else self._lost.take(reservation)
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
            self._lost.put(row, (scopes, amount, unit))

    def _add(self, table: str, scopes: Sequence[str], unit: str, amount: Decimal) -> None:
        for scope in scopes:
            total = self._sum(table, scope, unit) + amount
            self._sums[table, scope, unit] = total
            self._changed[table][scope, unit] = None

    def _sum(self, table: str, scope: str, unit: str) -> Decimal:
        total = self._sums.get((table, scope, unit))
        if total is not None:
            return total
        statement = f"SELECT amount FROM {table} WHERE scope = ? AND unit = ?"
        row = self._connection.execute(statement, (scope, unit)).fetchone()
        self._sums[table, scope, unit] = total = Decimal(row[0]) if row else Decimal(0)
        return total


def counted_in(connection: sqlite3.Connection) -> int | None:
    """Return the number of the last event that the tables count; None for a file of an older version, whose tables count all events.

    :raises sqlite3.DatabaseError: if the table was changed.
    """
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'counted'").fetchone():
        return None
    rows = connection.execute("SELECT id, seq FROM counted").fetchall()
    if len(rows) != 1 or rows[0][0] != _COUNTED or not isinstance(rows[0][1], int):
        raise sqlite3.DatabaseError(f"the table counted was changed: it has {rows!r}: run dicast ledger verify")
    seq: int = rows[0][1]
    return seq


def _text(amount: Decimal) -> str:
    """Return *amount* without an exponent. Its plain text takes a sixth of the time of a format."""
    text = str(amount)
    return f"{amount:f}" if "E" in text else text
