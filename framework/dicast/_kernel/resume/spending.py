"""Spending of a run: its settled amounts, and the amounts of calls that nothing has settled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from ..contract.protocols import Ledger
from ..events import SPEND_LOST, SPEND_RELEASED, SPEND_SETTLED
from ..values import Cost, Head, Query
from ..values.score import zero_costs
from .digests import read_digest

_CLOSING = (SPEND_SETTLED, SPEND_RELEASED, SPEND_LOST)


@frozen
class Spending:
    """Amounts of a run, up to the row of *head*.

    :param settled: the settled amounts by unit, without amounts of unknown price.
    :param unknown: the number of settled calls of unknown price by unit.
    :param lost: the lost reservations by their ids, without reservations that a later event settled or released.
    :param reserved: the open reservations.
    """

    settled: Mapping[str, Cost] = field(factory=zero_costs)
    unknown: Mapping[str, int] = field(factory=dict)
    lost: Mapping[str, Cost] = field(factory=dict)
    reserved: Sequence[Cost] = ()
    head: Head | None = None

    def grow(self, ledger: Ledger, run_id: str) -> Spending:
        """Return the spending with the amounts after :attr:`head`, in another ledger with all amounts.

        Open reservations are read first: an amount that is settled meanwhile counts twice, so the sum is still an upper bound.
        """
        if self.head is not None and read_digest(ledger, self.head.seq) != self.head.digest:
            return Spending().grow(ledger, run_id)
        reserved, head = reserved_costs(ledger, run_id).get(run_id, ()), ledger.head()
        settled: dict[str, Cost] = {**self.settled}
        lost: dict[str, Cost] = {**self.lost}
        unknown = Counter(self.unknown)
        for entry in ledger.read(Query(run_id, _CLOSING, after=0 if self.head is None else self.head.seq)):
            if head is None or entry.seq > head.seq:
                break
            payload: Mapping[str, Any] = entry.event.payload
            lost.pop(payload["reservation_id"], None)  # a later event replaces the lost amount
            if entry.event.type == SPEND_RELEASED:
                continue
            cost = Cost(payload["amount"], payload["unit"])
            if entry.event.type == SPEND_LOST:
                lost[payload["reservation_id"]] = cost
            elif cost.amount is None:
                unknown[cost.unit] += 1
            else:
                settled[cost.unit] += cost
        return Spending(settled, unknown, lost, reserved, head)

    @property
    def cost(self) -> dict[str, str | None]:
        """The settled amounts by unit, as decimals; None for a unit with a call of unknown price."""
        return {unit: None if self.unknown.get(unit) else cost.decimal for unit, cost in self.settled.items()}

    @property
    def unsettled(self) -> dict[str, str | None]:
        """The amounts of open and lost reservations by unit, as decimals: the most that they can add to the settled amounts."""
        return decimals([*self.lost.values(), *self.reserved])


def run_spending(ledger: Ledger, run_id: str) -> Spending:
    """Return the spending of a run."""
    return Spending().grow(ledger, run_id)


def reserved_costs(ledger: Ledger, run_id: str | None = None) -> dict[str, list[Cost]]:
    """Return the amounts of open reservations by run, of *run_id* or of all runs."""
    costs: dict[str, list[Cost]] = {}
    for entry in ledger.reservations(run_id):
        payload: Mapping[str, Any] = entry.event.payload
        costs.setdefault(entry.event.run_id, []).append(Cost(payload["amount"], payload["unit"]))
    return costs


def decimals(costs: Iterable[Cost]) -> dict[str, str | None]:
    """Return the sums of *costs* by unit, as decimals."""
    sums = zero_costs()
    for cost in costs:
        sums[cost.unit] += cost
    return {unit: cost.decimal for unit, cost in sums.items()}
