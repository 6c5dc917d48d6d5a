"""One call of a component while it is under way: what is held for it, what has come back, and how that is settled."""

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
"""The metric of a reply that came in a batch: the item's id, by which a resumed run knows that it was booked."""

SHARE_INSIDE = 0.95
"""Of the time that a call has left, how much a judge inside it may take."""


class Asker(ABC):
    """Asks for a unit or for a task, and pays: what a call may cost is reserved before it, and settled after it."""

    _budget: BudgetGate
    _eval_id: str | None

    @abstractmethod
    def ask_inside(self, call: Call, subject: Subject, children: Sequence[Verdict], around: CallScope) -> Any:
        """The answer of a judge inside the component whose call is *around*, to be awaited unless it is there at once."""

    async def cover(self, scope: CallScope, cost: Cost) -> Failure | None:
        """Reserve *cost* for the call *scope* unless something is; a Failure, which says why, when there is no room."""
        if cost.unit in scope.held or cost.is_zero:
            return None
        if cost.amount is None:
            return throttled(Skip("unknown_price", cost))
        held = await self._reserve(scope, cost)
        if isinstance(held, Refusal):
            return throttled(Skip(held.cap.reason, cost))
        scope.held[cost.unit] = held
        return None

    async def _reserve(self, scope: CallScope, cost: Cost) -> Reservation | Refusal:
        """Reserve *cost*; a call that holds room, or is inside one that does, does not wait for others."""
        seconds = max(0.0, scope.until - time.monotonic(), scope.lasting)
        alone = not scope.held and (scope.around is None or not scope.around.held)
        return await self._budget.reserve(
            scope.subject, self._eval_id, cost, seconds, patient=alone, lasting=scope.lasting > 0
        )

    async def cover_more(self, scope: CallScope, cost: Cost, spent: Cost) -> Failure | None:
        """Reserve *cost* and *spent* for each request of *scope* that is under way, in place of what is held and is too little.

        :param spent: the expense of failed tries.

        A Failure when there is no room. A call for which nothing is reserved stays so.
        """
        held = scope.held.get(cost.unit)
        if held is None or cost.amount is None:
            return None
        if scope.received[cost.unit].is_zero and spent.is_zero:
            needed = max(sum([cost] * len(scope.asking), Cost.zero(cost.unit)), scope.projected(cost.unit), key=_amount)
            if not exceeds(needed, held.projected):
                return None
            self._budget.release(scope.held.pop(cost.unit))  # calls that wait for each other hold nothing
            return await self.cover(scope, needed)
        if spent.is_zero and len(scope.asking) == 1:
            return await self.cover_again(scope, cost)
        needed = sum([cost + spent] * len(scope.asking), scope.received[cost.unit])
        if not exceeds(needed, held.projected):
            return None
        more = await self._reserve(scope, needed)
        if isinstance(more, Refusal):
            return throttled(Skip(more.cap.reason, needed))
        self._budget.release(held)
        scope.held[cost.unit] = more
        return None

    def settle(self, scope: CallScope, owed: Mapping[str, Cost], **answered: Any) -> None:
        """Settle what is *owed* in each unit for the call *scope*; what was bought, and *answered*, goes with the first amount."""
        settled = bought = {**scope.bought, **answered}
        for unit in (unit for unit, cost in owed.items() if unit in scope.held or not cost.is_zero):
            if unit in scope.held:
                self._budget.settle(scope.held[unit], owed[unit], settled, scope.path)
            else:
                self._budget.charge(scope.subject, self._eval_id, owed[unit], settled, scope.path)
            settled = {**bought, "calls": 0, "tokens": None, "reply": None}
            settled.pop("batch_items", None)
        if settled is bought:
            self._budget.note(scope.subject, self._eval_id, bought)

    async def cover_again(self, scope: CallScope, cost: Cost) -> Failure | None:
        """Reserve *cost* for asking again where what is held for the call *scope* has no room left; what came so far is settled then.

        A Failure when there is no room.
        """
        held = scope.held.get(cost.unit)
        if held is not None and not exceeds(scope.received[cost.unit] + cost, held.projected):
            return None
        if scope.held:
            self.settle(scope, scope.received)
            for unit, received in scope.received.items():
                scope.settled[unit] += received
            scope.held, scope.received, scope.calls, scope.tokens, scope.items = {}, zero_costs(), 0, None, []
        return await self.cover(scope, cost)


def _amount(cost: Cost) -> Decimal:
    return cost.amount or Decimal(0)


def throttled(skip: Skip) -> Failure:
    """What a judge's subject ends in when there is no room for its call."""
    upto = "" if skip.cost.amount is None else f", which may cost up to {skip.cost},"
    message = f"no room for this call{upto} and no judge to fall back on ({skip.reason})"
    return Failure("throttled_no_heuristic", message, throttled_reason=skip.reason)


@define
class CallScope:
    """One call of a component, and what the chat models and judges inside it have cost.

    *received* is what the replies of its own chat models cost, which is still to be settled; *settled* is what judges inside it
    have settled by themselves; *spent* is what all of it came to once it has ended, in each unit; *until* is when the call's time is over, by the monotonic clock; *estimate* returns its projected cost; *held* is what was reserved
    for it, under the lock *covering*. These three have an amount for each unit of money. *cut* says that a request ended unheard,
    *queued* that one was given up; without *cut*, before it was sent. *path*, *judge* and *metric* say what is asked, and for what;
    *asking* is how many requests are under way, *again* that one was put again. *adapted* has the parameters that endpoints refused. *lasting* is how many seconds the replies take at most, where
    all of them come in batches, else 0; *waits* says that the call was given up before such a reply came. *items* names the items of batches that
    were paid since the last settlement.
    """

    asker: Asker
    subject: Subject
    rollout: int
    path: str
    judge: str
    metric: str
    around: CallScope | None = None
    held: dict[str, Reservation] = field(factory=dict)
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
        """What a settlement says of the call: what was bought since the last one, and for what."""
        of = {"judge": self.judge, "metric": self.metric, "rollout": self.rollout}
        items = {"batch_items": self.items} if self.items else {}
        return {"model": self.model, "calls": self.calls, "tokens": self.tokens, **of, "reply": None, **items}

    def projected(self, unit: Literal["usd", "msat"]) -> Cost:
        """Return the current estimate of the whole call's cost, in *unit*; nothing if it has no estimate."""
        if self.estimate is None:
            return Cost.zero(unit)
        with holding(SCOPE, self):
            cost = self.estimate()
        return cost if isinstance(cost, Cost) and cost.unit == unit and cost.amount is not None else Cost.zero(unit)

    @property
    def seconds_inside(self) -> float:
        """How long a judge inside may take, so that its owner has time left to make something of its failure."""
        return max(0.0, self.until - time.monotonic()) * SHARE_INSIDE

    def receive(self, answer: Reply | Failure) -> None:
        """Count what a chat model answered."""
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

    def give_up_unsent(self) -> None:
        """Count a chat model's call that was given up before it was sent."""
        self.queued = True

    def give_up(self, wire: RequestTrace) -> None:
        """Count a chat model's call that was given up: its tries, which are known, and one that was under way, which is not."""
        if wire.waits:
            self.waits = True
            return
        self.receive(Failure("timeout", "given up", cost=wire.spent))
        self.queued = True
        self.cut = self.cut or wire.cut or not wire.paced
        if self.cut and (held := self.held.get(wire.spent.unit)) is not None:  # made for one try alone
            self.held[wire.spent.unit] = evolve(held, projected=held.projected + wire.spent)

    def prolong(self, seconds: float) -> None:
        """Give this call, and those around it, more time: that of a wait for a batch."""
        scope: CallScope | None = self
        while scope is not None and seconds:
            scope.until += seconds
            scope = scope.around

    def owed(self, said: Cost, *, has_own_price: bool = False) -> dict[str, Cost]:
        """Return what is still to be settled in each unit, for a component that reports the cost *said*.

        With *has_own_price* that is the component's own price, which is added to the cost of its replies. Otherwise it is the cost of
        the whole call: the replies are counted in any case, and what *said* has beyond them.
        """
        if has_own_price:
            return self.received if said.is_zero else {**self.received, said.unit: self.received[said.unit] + said}
        inside, received = self.settled[said.unit].amount, self.received[said.unit].amount
        if inside is None or received is None or (said.amount is not None and said.amount - inside <= received):
            return self.received
        beyond = None if said.amount is None else said.amount - inside
        return {**self.received, said.unit: evolve(said, amount=beyond)}


SCOPE: ContextVar[CallScope | None] = ContextVar("dicast_scope", default=None)
"""The call that is under way in the current task: how what is inside a component knows whose it is. None inside a model."""
