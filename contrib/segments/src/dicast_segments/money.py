"""Reserved and spent amounts, which follow from the events. The state of the ledger has them, so that a cap is checked without reading events.

The rules, by event:

- ``spend.reserved`` opens a reservation: its amount counts as open in each of its scopes.
- ``spend.settled`` closes it and counts the actual amount, in its unit; for an amount of null the reserved amount counts.
- ``spend.released`` closes it and counts nothing.
- ``spend.lost`` closes it and counts as spent.
- After ``spend.lost``, a late ``settled`` or ``released`` replaces the lost amount; a second ``lost`` changes nothing.
- An event about an unknown reservation, or about one that is already settled or released, changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import attrs

from dicast import Cap, Event, LedgerError, Refusal
from dicast.toolkit.ledger_lines.amounts import amount_of, claim_refusal, claimed_amount, utc_moment

from .lines import Row

_CLOSING = ("spend.settled", "spend.released", "spend.lost")
_MISSING = object()

_Sum = tuple[str, str, str]
"""``spend`` or ``held``, the scope and the unit."""


@attrs.frozen
class Reservation:
    """An open reservation: the number and the row of its event, its amount, and the end of its lease as comparable text."""

    seq: int
    row: Row
    run_id: str
    scopes: tuple[str, ...]
    amount: Decimal
    unit: str
    lease_until: str | None
    outlives: bool

    @classmethod
    def of(cls, seq: int, row: Row, payload: Mapping[str, Any]) -> Reservation:
        """Return the reservation of a ``spend.reserved`` event.

        :raises LookupError, TypeError, ValueError, ArithmeticError: if the payload does not have the form of its type.
        """
        lease = payload.get("lease_until")
        return cls(
            *(seq, row, row.columns[3], tuple(payload["scopes"]), amount_of(payload), payload["unit"]),
            *(None if lease is None else utc_moment(lease), bool(payload.get("outlives_run"))),
        )


class Money:
    """Open and lost reservations with their sums. Changes since :meth:`keep` are undone by :meth:`undo`."""

    def __init__(self) -> None:
        self.open: dict[str, Reservation] = {}
        self.lost: dict[str, tuple[tuple[str, ...], Decimal, str]] = {}
        self.sums: dict[_Sum, Decimal] = {}
        self._journal: list[tuple[dict[Any, Any], Any, Any]] = []

    def keep(self) -> None:
        """Keep all changes."""
        self._journal.clear()

    def undo(self) -> None:
        """Undo all changes since :meth:`keep`."""
        while self._journal:
            table, key, value = self._journal.pop()
            if value is _MISSING:
                del table[key]
            else:
                table[key] = value

    def record(self, seq: int, row: Row, payload: Mapping[str, Any]) -> None:
        """Apply the event in *row*, whose number is *seq*.

        :raises LedgerError: for a second open reservation with the same id, or a payload that does not have the form of its type.
        """
        kind = row.columns[1]
        try:
            if kind == "spend.reserved":
                id_ = payload["reservation_id"]
                if id_ in self.open:
                    raise ValueError(f"the reservation {id_} is open")
                reservation = Reservation.of(seq, row, payload)
                self._set(self.open, id_, reservation)
                self._add("held", reservation.scopes, reservation.unit, reservation.amount)
            elif kind in _CLOSING:
                self._close(kind, payload)
        except (LookupError, TypeError, ValueError, InvalidOperation) as error:
            raise LedgerError(f"cannot account for this {kind} event, {error!r}: {dict(payload)}") from error

    def expired(self, now: str, ledgers_now: str, lease_end: Callable[[str], str | None]) -> list[Reservation]:
        """Return the open reservations whose lease ended before *now*, or whose run's lease ended before *ledgers_now*; oldest first.

        *lease_end* returns the end of a run's lease, or None. A reservation that outlives its run ends only after both leases are over.
        """
        moment, over = utc_moment(now), list[Reservation]()
        for reservation in self.open.values():
            has_lapsed = reservation.lease_until is not None and reservation.lease_until < moment
            end = lease_end(reservation.run_id)
            if reservation.outlives:
                is_over = has_lapsed and not (end is not None and end >= ledgers_now)
            else:
                is_over = has_lapsed or (end is not None and end < ledgers_now)
            if is_over:
                over.append(reservation)
        return sorted(over, key=lambda reservation: reservation.seq)

    def refusal(self, caps: Sequence[Cap], event: Event) -> Refusal | None:
        """Return the refusal of a claim, or None if every cap allows it.

        :raises LedgerError: if *event* has no valid amount.
        """
        return claim_refusal(caps, *claimed_amount(event), self._sum)

    def as_json(self) -> dict[str, Any]:
        """Return the state as JSON data; see :meth:`of`."""
        return {
            "open": [
                [reservation.seq, reservation.row.line().decode()]
                for reservation in sorted(self.open.values(), key=lambda reservation: reservation.seq)
            ],
            "lost": sorted(
                [id_, list(scopes), f"{amount:f}", unit] for id_, (scopes, amount, unit) in self.lost.items()
            ),
            "sums": sorted([*key, f"{amount:f}"] for key, amount in self.sums.items() if amount),
        }

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Money:
        """Return the amounts of :meth:`as_json`.

        :raises LookupError, TypeError, ValueError, ArithmeticError: if they have another form.
        """
        money = cls()
        for seq, line in data["open"]:
            row = Row.read(line.encode(), None)
            payload = row.event().payload
            money.open[str(payload["reservation_id"])] = Reservation.of(seq, row, payload)
        money.lost = {id_: (tuple(scopes), Decimal(amount), unit) for id_, scopes, amount, unit in data["lost"]}
        money.sums = {(table, scope, unit): Decimal(amount) for table, scope, unit, amount in data["sums"]}
        return money

    def _close(self, kind: str, payload: Mapping[str, Any]) -> None:
        id_ = payload["reservation_id"]
        reservation = self.open.get(id_)
        if reservation is not None:
            self._remove(self.open, id_)
            scopes, amount, unit = reservation.scopes, reservation.amount, reservation.unit
            self._add("held", scopes, unit, -amount)
        elif kind != "spend.lost" and id_ in self.lost:
            scopes, amount, unit = self.lost[id_]
            self._remove(self.lost, id_)
            self._add("spend", scopes, unit, -amount)
        else:
            return
        if kind == "spend.released":
            return
        if payload.get("amount") is not None:
            amount, unit = amount_of(payload), payload["unit"]
        self._add("spend", scopes, unit, amount)
        if kind == "spend.lost":
            self._set(self.lost, id_, (scopes, amount, unit))

    def _sum(self, table: str, scope: str, unit: str) -> Decimal:
        return self.sums.get((table, scope, unit), Decimal(0))

    def _add(self, table: str, scopes: Sequence[str], unit: str, amount: Decimal) -> None:
        for scope in scopes:
            self._set(self.sums, (table, scope, unit), self._sum(table, scope, unit) + amount)

    def _set(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        self._journal.append((table, key, table.get(key, _MISSING)))
        table[key] = value

    def _remove(self, table: dict[Any, Any], key: Any) -> None:
        self._journal.append((table, key, table.pop(key)))
