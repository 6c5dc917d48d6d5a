"""The sums of amounts, computed from the events, for a comparison with the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import attrs
import psycopg

from dicast import Event, LedgerError

from .changes import spending_of

_Reservation = tuple[str, Sequence[str], Decimal, str]
"""The run, the scopes, the amount and the unit."""


@attrs.define
class Sums:
    """Open and lost reservations, and the spent and held amounts by scope, unit and run."""

    open: dict[str, tuple[int, _Reservation]] = attrs.field(factory=dict)
    lost: dict[str, _Reservation] = attrs.field(factory=dict)
    amounts: dict[tuple[str, str, str], list[Decimal]] = attrs.field(factory=dict)

    def record(self, seq: int, event: Event) -> None:
        """Apply an event of amounts.

        :raises LedgerError: for a second reservation with the same id, or a payload that does not have the form of its type.
        """
        if event.type not in ("spend.reserved", "spend.settled", "spend.released", "spend.lost"):
            return
        row = spending_of(event, 0)
        if event.type == "spend.reserved":
            if row["id"] in self.open:
                raise LedgerError(f"the reservation {row['id']} is made twice")
            reservation = event.run_id, tuple(row["scopes"]), Decimal(row["amount"]), row["unit"]
            self.open[row["id"]] = seq, reservation
            self._add(reservation, held=reservation[2])
            return
        self._close(event.type, row)

    def differing(self, connection: psycopg.Connection[Any]) -> str | None:
        """Return the first difference from the tables as text; None if all rows are equal."""
        expected: Mapping[str, set[tuple[Any, ...]]] = {
            "reservations": {(id_, seq, run, scopes, *rest) for id_, (seq, (run, scopes, *rest)) in self.open.items()},
            "lost": {(id_, *reservation) for id_, reservation in self.lost.items()},
            "accounts": {(*key, *sums) for key, sums in self.amounts.items() if any(sums)},
        }
        queries = {
            "reservations": "SELECT id, seq, run_id, scopes, amount, unit FROM reservations",
            "lost": "SELECT id, run_id, scopes, amount, unit FROM lost",
            "accounts": "SELECT scope, unit, run_id, spent, held FROM accounts WHERE spent <> 0 OR held <> 0",
        }
        for table, query in queries.items():
            rows = {
                tuple(tuple(value) if isinstance(value, list) else value for value in row)
                for row in connection.execute(query)
            }
            for row in sorted(rows ^ expected[table], key=str):
                return f"{table}: {row} is {'not in' if row in expected[table] else 'only in'} the table"
        return None

    def _close(self, kind: str, row: Mapping[str, Any]) -> None:
        opened = self.open.pop(row["id"], None)
        if opened is not None:
            reservation = opened[1]
            self._add(reservation, held=-reservation[2])
        else:
            before = None if kind == "spend.lost" else self.lost.pop(row["id"], None)
            if before is None:
                return
            reservation = before
            self._add(reservation, spent=-reservation[2])
        if kind == "spend.released":
            return
        run, scopes, amount, unit = reservation
        if row.get("amount") is not None:
            amount, unit = Decimal(row["amount"]), row["unit"]
        counted = run, scopes, amount, unit
        self._add(counted, spent=amount)
        if kind == "spend.lost":
            self.lost[row["id"]] = counted

    def _add(self, reservation: _Reservation, *, spent: Decimal = Decimal(0), held: Decimal = Decimal(0)) -> None:
        run, scopes, _, unit = reservation
        for scope in scopes:
            sums = self.amounts.setdefault((scope, unit, run), [Decimal(0), Decimal(0)])
            sums[0] += spent
            sums[1] += held
