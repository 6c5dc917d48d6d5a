"""One active call of a component: its reservations, its received replies, and its settlement."""

from __future__ import annotations

import asyncio
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from decimal import Decimal
from typing import Any, Literal

from ...toolkit.rate_limit import RequestTrace
from ..classes import define, evolve, field
from ..timing.turns import holding
from ..values import Cost, Failure, Refusal, Reply, Subject, Verdict
from ..values.score import zero_costs
from .budget import BudgetGate, Reservation, exceeds
from .call import Call
from .scoring import Skip

BATCH_ITEM = "batch_item"
"""Metric of a reply from a batch: the item's id, which shows a resumed run that the reply was booked."""

SHARE_INSIDE = 0.95
"""Share of a call's remaining time for a judge inside it."""


class Asker(ABC):
    """Caller of components for a unit or for a task, which reserves the cost of a call before it and settles it after it."""

    _budget: BudgetGate
    _eval_id: str | None

    @abstractmethod
    def ask_inside(self, call: Call, subject: Subject, children: Sequence[Verdict], around: CallScope) -> Any:
        """Return the answer of a judge inside the component whose call is *around*, or an awaitable of it."""

    def note_answer(self, answer: Reply | Failure) -> None:
        """Count the tries of a chat model's *answer*."""
        self._budget.unpaid.add(answer)

    async def cover(self, scope: CallScope, cost: Cost) -> Failure | None:
        """Reserve *cost* for the call *scope* unless it has a reservation; return a Failure with the reason if the remaining budget is too small."""
        if cost.unit in scope.reserved or cost.is_zero:
            return None
        if cost.amount is None:
            return throttled(Skip("unknown_price", cost))
        reservation = await self._reserve(scope, cost)
        if isinstance(reservation, Refusal):
            return throttled(Skip(reservation.cap.reason, cost))
        scope.reserved[cost.unit] = reservation
        return None

    async def _reserve(self, scope: CallScope, cost: Cost) -> Reservation | Refusal:
        """Reserve *cost*. A call with a reservation, or inside a call with one, does not wait for other calls."""
        seconds = max(0.0, scope.until - time.monotonic(), scope.lasting)
        alone = not scope.reserved and (scope.around is None or not scope.around.reserved)
        return await self._budget.reserve(
            scope.subject, self._eval_id, cost, seconds, patient=alone, lasting=scope.lasting > 0
        )

    async def cover_more(self, scope: CallScope, cost: Cost, spent: Cost) -> Failure | None:
        """Reserve *cost* and *spent* for each active request of *scope*, in place of a reservation that is too small.

        Return a Failure if the remaining budget is too small. A call without a reservation stays so.

        :param spent: the expense of failed tries.
        """
        previous = scope.reserved.get(cost.unit)
        if previous is None or cost.amount is None:
            return None
        if scope.received[cost.unit].is_zero and spent.is_zero:
            needed = max(sum([cost] * len(scope.asking), Cost.zero(cost.unit)), scope.projected(cost.unit), key=_amount)
            if not exceeds(needed, previous.projected):
                return None
            self._budget.release(scope.reserved.pop(cost.unit))  # calls that wait for each other have no reservations
            return await self.cover(scope, needed)
        if spent.is_zero and len(scope.asking) == 1:
            return await self.cover_again(scope, cost)
        needed = sum([cost + spent] * len(scope.asking), scope.received[cost.unit])
        if not exceeds(needed, previous.projected):
            return None
        reservation = await self._reserve(scope, needed)
        if isinstance(reservation, Refusal):
            return throttled(Skip(reservation.cap.reason, needed))
        self._budget.release(previous)
        scope.reserved[cost.unit] = reservation
        return None

    def settle(self, scope: CallScope, owed: Mapping[str, Cost], **answered: Any) -> None:
        """Settle *owed* in each unit for the call *scope*. The first event describes the purchase, with *answered*; the others have amounts alone."""
        settled = bought = {**scope.bought, **answered}
        for unit in (unit for unit, cost in owed.items() if unit in scope.reserved or not cost.is_zero):
            if unit in scope.reserved:
                self._budget.settle(scope.reserved[unit], owed[unit], settled, scope.path)
            else:
                self._budget.charge(scope.subject, self._eval_id, owed[unit], settled, scope.path)
            settled = {**bought, "calls": 0, "tokens": None, "reply": None}
            settled.pop("batch_items", None)
        if settled is bought:
            self._budget.note(scope.subject, self._eval_id, bought)

    async def cover_again(self, scope: CallScope, cost: Cost) -> Failure | None:
        """Reserve *cost* for a repeated request if the reservation of the call *scope* is too small for it; first settle the costs so far.

        Return a Failure if the remaining budget is too small.
        """
        reservation = scope.reserved.get(cost.unit)
        if reservation is not None and not exceeds(scope.received[cost.unit] + cost, reservation.projected):
            return None
        if scope.reserved:
            self.settle(scope, scope.received)
            for unit, received in scope.received.items():
                scope.settled[unit] += received
            scope.reserved, scope.received, scope.calls, scope.tokens, scope.items = {}, zero_costs(), 0, None, []
        return await self.cover(scope, cost)


def _amount(cost: Cost) -> Decimal:
    return cost.amount or Decimal(0)


def throttled(skip: Skip) -> Failure:
    """Return the failure of a judge's subject for which the remaining budget is too small."""
    upto = "" if skip.cost.amount is None else f", which may cost up to {skip.cost},"
    message = f"a cap forbids this call{upto} and there is no fallback judge ({skip.reason})"
    return Failure("throttled_no_heuristic", message, throttled_reason=skip.reason)


@define
class CallScope:
    """One call of a component, with the costs of the chat models and judges inside it.

    *received* is the cost of the replies of its own chat models that is not settled yet. *settled* is the cost that nested judges have settled.
    *spent* is the total after the call. These three have an amount for each unit of money. *around* is the call that this call is inside.
    *until* is the end of the call's time by the monotonic clock. *estimate* returns its projected cost. *reserved* are its reservations;
    the lock *covering* guards them. *cut* is True if a request ended without an answer. *queued* is True if a request was abandoned,
    before it was sent unless *cut*. *path*, *judge* and *metric* name the component and the purpose. *asking* are the active requests.
    *again* is True if a request was repeated. *adapted* has the parameters that endpoints refused. *lasting* is the
    highest number of seconds until the replies if all of them come in batches, else 0. *waits* is True if the call was abandoned before
    such a reply came. *items* are the batch items that were paid since the last settlement.
    """

    asker: Asker
    subject: Subject
    rollout: int
    path: str
    judge: str
    metric: str
    around: CallScope | None = None
    reserved: dict[str, Reservation] = field(factory=dict)
    covering: asyncio.Lock = field(factory=asyncio.Lock)
    cut: bool = False
    queued: bool = False
    received: dict[str, Cost] = field(factory=zero_costs)
    settled: dict[str, Cost] = field(factory=zero_costs)
    spent: tuple[Cost, ...] = ()
    model: str | None = None
    calls: int = 0
    tokens: int | None = None
    until: float = math.inf
    estimate: Callable[[], Cost | Failure] | None = None
    asking: set[asyncio.Future[None]] = field(factory=set)
    again: bool = False
    adapted: set[str] = field(factory=set)
    lasting: float = 0.0
    waits: bool = False
    items: list[str] = field(factory=list)

    @property
    def bought(self) -> Mapping[str, Any]:
        """Description of the purchase since the last settlement, for the event."""
        of = {"judge": self.judge, "metric": self.metric, "rollout": self.rollout}
        items = {"batch_items": self.items} if self.items else {}
        return {"model": self.model, "calls": self.calls, "tokens": self.tokens, **of, "reply": None, **items}

    def projected(self, unit: Literal["usd", "msat"]) -> Cost:
        """Return the current estimate of the whole call's cost, in *unit*; zero if it has no estimate."""
        if self.estimate is None:
            return Cost.zero(unit)
        with holding(SCOPE, self):
            cost = self.estimate()
        return cost if isinstance(cost, Cost) and cost.unit == unit and cost.amount is not None else Cost.zero(unit)

    @property
    def seconds_inside(self) -> float:
        """Seconds for a nested judge, so that its owner has time left to handle its failure."""
        return max(0.0, self.until - time.monotonic()) * SHARE_INSIDE

    def receive(self, answer: Reply | Failure) -> None:
        """Count an answer of a chat model."""
        self.received[answer.cost.unit] += answer.cost
        self.adapted.update(answer.adapted)
        if isinstance(answer, Failure):
            self.calls += not answer.cost.is_zero
            return
        self.model = answer.model or self.model
        if answer.metrics.get("cached") is True:
            return
        self.calls += 1
        if (item := answer.metrics.get(BATCH_ITEM)) is not None:
            self.items = [*self.items, str(item)]
        if answer.usage is not None:
            self.tokens = (self.tokens or 0) + answer.usage.input_tokens + answer.usage.output_tokens

    def cut_off(self, failure: Failure) -> Failure:
        """Count a request that ended without an answer; return its *failure*."""
        self.cut = True
        self.asker.note_answer(failure)
        return failure

    def give_up_unsent(self) -> None:
        """Count a chat model's call that was abandoned before it was sent."""
        self.queued = True

    def give_up(self, wire: RequestTrace) -> None:
        """Count a chat model's abandoned call: the cost of its tries is known, the cost of its active request is not."""
        if wire.waits:
            self.waits = True
            return
        self.receive(failure := Failure("timeout", "given up", cost=wire.spent))
        self.queued = True
        if is_sent := wire.cut or not wire.paced:
            self.asker.note_answer(failure)
        self.cut = self.cut or is_sent
        if self.cut and (reservation := self.reserved.get(wire.spent.unit)) is not None:  # reserved for one try alone
            self.reserved[wire.spent.unit] = evolve(reservation, projected=reservation.projected + wire.spent)

    def prolong(self, seconds: float) -> None:
        """Extend the time of this call, and of the calls around it, by the *seconds* of a wait for a batch."""
        scope: CallScope | None = self
        while scope is not None and seconds:
            scope.until += seconds
            scope = scope.around

    def owed(self, cost: Cost, *, has_own_price: bool = False) -> dict[str, Cost]:
        """Return the amount to settle in each unit, for a component that reports *cost*.

        With *has_own_price*, *cost* is the component's own price and is added to the cost of its replies. Otherwise *cost* is for the
        whole call: the received replies are always owed, and so is the part of *cost* beyond them and beyond the nested judges.
        """
        if has_own_price:
            return self.received if cost.is_zero else {**self.received, cost.unit: self.received[cost.unit] + cost}
        inside, received = self.settled[cost.unit].amount, self.received[cost.unit].amount
        if inside is None or received is None or (cost.amount is not None and cost.amount - inside <= received):
            return self.received
        beyond = None if cost.amount is None else cost.amount - inside
        return {**self.received, cost.unit: evolve(cost, amount=beyond)}


SCOPE: ContextVar[CallScope | None] = ContextVar("dicast_scope", default=None)
"""Active call in the current task, by which nested components find their owner. None inside a model."""
