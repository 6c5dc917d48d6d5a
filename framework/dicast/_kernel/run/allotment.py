"""Allotment of a split run: its part of the day's caps, which the ledger of the run holds while workers spend it in other ledgers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

from ..classes import frozen
from ..contract.protocols import Ledger
from ..events import SPEND_RELEASED, SPEND_RESERVED
from ..plan.sections import Budget
from ..stream.stream import Stream
from ..values import Cap, Claim, Cost, Event, Lost, Query
from ..values.clock import Clock

_DAYS = 8
"""Days that an allotment holds, from today on: the workers may spend it on each of them."""

_PLACES, _STEPS = 6, (5, 2, 2, 1)
"""Decimal places of a partial amount, and the amounts at each place. Sums of these amounts make every digit from 0 to 9."""


@frozen
class Allotment:
    """Amounts that the shards of a run may spend together, and the ids of the reservations that hold them in the ledger of the run.

    An allotment is released when the events of the shards are in the ledger of the run. If the process of the run is killed, it counts as spent
    until the run is resumed and ends.
    """

    ids: tuple[str, ...] = ()
    amounts: tuple[Cost, ...] = ()

    @classmethod
    def left_open(cls, ledger: Ledger, run_id: str, budget: Budget) -> Allotment:
        """Return the reservations that earlier processes of the run have not released."""
        reservations = dict[str, Cost]()
        for entry in ledger.read(Query(run_id, (SPEND_RESERVED, SPEND_RELEASED))):
            payload: Any = entry.event.payload
            if entry.event.type == SPEND_RELEASED:
                reservations.pop(payload["reservation_id"], None)
            elif entry.event.subject_id is None:  # the reservation of a call is about a subject
                reservations[payload["reservation_id"]] = Cost(Decimal(payload["amount"]), payload["unit"])
        return cls.of(reservations, budget)

    @classmethod
    async def take(cls, stream: Stream, clock: Clock, budget: Budget) -> Allotment:
        """Take what is left under the caps of the day, at most the caps of the run, for today and the next days."""
        reservations = dict[str, Cost]()
        for unit in sorted({cap.unit for cap in budget.day}):
            amounts = [cap.amount for cap in (*budget.day, *budget.run) if cap.unit == unit and cap.amount is not None]
            if not (most := min(amounts, default=Decimal(0))):
                continue
            places = range(most.adjusted(), most.adjusted() - _PLACES, -1)
            parts = [Decimal(step).scaleb(place) for place in places for step in _STEPS]
            grants = await _claims(stream, clock, budget, [Cost(most, unit)])
            reservations |= grants or await _claims(stream, clock, budget, [Cost(part, unit) for part in parts])
        return cls.of(reservations, budget)

    @classmethod
    def of(cls, reservations: Mapping[str, Cost], budget: Budget) -> Allotment:
        """Return the allotment of *reservations*, amounts by their ids: nothing in another unit that has a cap of the day."""
        sums = {cap.unit: Cost.zero(cap.unit) for cap in budget.day}
        for cost in reservations.values():
            sums[cost.unit] = sums.get(cost.unit, Cost.zero(cost.unit)) + cost
        return cls(tuple(reservations), tuple(sums.values()))

    def release_events(self, event: Callable[[str, Mapping[str, object]], Event]) -> list[Event]:
        """Return the events that give back the amounts; *event* makes an event of a type and a payload."""
        return [event(SPEND_RELEASED, {"reservation_id": id_}) for id_ in self.ids]


async def _claims(stream: Stream, clock: Clock, budget: Budget, amounts: Sequence[Cost]) -> dict[str, Cost]:
    """Return the granted *amounts* by the ids of their reservations. One transaction decides them, each after the other."""
    days = [f"day:{(clock.now() + timedelta(days=days)).date().isoformat()}" for days in range(_DAYS)]
    caps = [Cap(day, "daily_cap", limit) for day in days for limit in budget.day]
    answers = {}
    for amount in amounts:
        id_ = clock.id()
        payload = {
            "reservation_id": id_,
            "scopes": days,
            "amount": amount.decimal,
            "unit": amount.unit,
            "lease_until": None,
            "eval_id": None,
        }
        claim = Claim(stream.event(SPEND_RESERVED, payload), caps)
        answers[id_] = amount, stream.claim(claim, Lost(*clock.stamp()))
    return {id_: amount for id_, (amount, answer) in answers.items() if await answer is None}
