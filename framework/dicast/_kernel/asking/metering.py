"""Judges and chat models inside other components: the kernel stands between them, so that every call is paid for and counted."""

from __future__ import annotations

import asyncio
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import attrs
import orjson

from ..._toolkit.rate_limit import WIRE, RequestTrace
from ..contract.define import maybe_await
from ..contract.protocols import ChatModel, Judge, estimate
from ..pipeline.plain_values import unstructure
from ..pipeline.sections import Slot
from ..report.tally import nothing
from ..stream.opening import Opener
from ..values import ChatRequest, Cost, Failure, Judgment, Refusal, Reply, Subject, Verdict
from ..values.endpoint_errors import AccessRefused
from ..values.errors import Interrupted
from .budget import BudgetGate, Reservation
from .call import Call
from .scoring import Skip
from .turns import call_turn

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
        seconds = max(0.0, scope.until - time.monotonic())
        alone = not scope.held and (scope.around is None or not scope.around.held)
        held = await self._budget.reserve(scope.subject, self._eval_id, cost, seconds, patient=alone)
        if isinstance(held, Refusal):
            return throttled(Skip(held.cap.reason, cost))
        scope.held[cost.unit] = held
        return None

    def settle(self, scope: CallScope, owed: Mapping[str, Cost], bought: Mapping[str, Any], path: str) -> None:
        """Settle what is *owed* in each unit for a call at *path*; what was *bought* goes with the first amount."""
        settled = bought
        for unit in (unit for unit, cost in owed.items() if unit in scope.held or not cost.is_zero):
            if unit in scope.held:
                self._budget.settle(scope.held[unit], owed[unit], settled)
            else:
                self._budget.charge(scope.subject, self._eval_id, owed[unit], settled, path)
            settled = {**bought, "calls": 0, "tokens": None, "reply": None}
        if settled is bought:
            self._budget.note(scope.subject, self._eval_id, bought)


def throttled(skip: Skip) -> Failure:
    """What a judge's subject ends in when there is no room for its call."""
    upto = "" if skip.cost.amount is None else f", which may cost up to {skip.cost},"
    message = f"no room for this call{upto} and no judge to fall back on ({skip.reason})"
    return Failure("throttled_no_heuristic", message, throttled_reason=skip.reason)


@attrs.define
class CallScope:
    """One call of a component, and what the chat models and judges inside it have cost.

    *received* is what the replies of its own chat models cost, which is still to be settled; *settled* is what judges inside it
    have settled by themselves; *spent* is what all of it came to once it has ended, in each unit; *until* is when the call's time is over, by the monotonic clock; *held* is what was reserved
    for it, under the lock *covering*. These three have an amount for each unit of money. *cut* says that a request ended unheard,
    *queued* that one was given up; without *cut*, before it was sent.
    """

    asker: Asker
    subject: Subject
    rollout: int
    around: CallScope | None = None
    held: dict[str, Reservation] = attrs.field(factory=dict)
    covering: asyncio.Lock = attrs.field(factory=asyncio.Lock)
    cut: bool = False
    queued: bool = False
    received: dict[str, Cost] = attrs.field(factory=nothing)
    settled: dict[str, Cost] = attrs.field(factory=nothing)
    spent: tuple[Cost, ...] = ()
    model: str | None = None
    calls: int = 0
    tokens: int | None = None
    until: float = math.inf

    @property
    def seconds_inside(self) -> float:
        """How long a judge inside may take, so that its owner has time left to make something of its failure."""
        return max(0.0, self.until - time.monotonic()) * SHARE_INSIDE

    def receive(self, answer: Reply | Failure) -> None:
        """Count what a chat model answered."""
        self.received[answer.cost.unit] += answer.cost
        if isinstance(answer, Failure):
            self.calls += not answer.cost.is_zero
            return
        self.model = answer.model or self.model
        if answer.metrics.get("cached") is True:
            return
        self.calls += 1
        if answer.usage is not None:
            self.tokens = (self.tokens or 0) + answer.usage.input_tokens + answer.usage.output_tokens

    def give_up_unsent(self) -> None:
        """Count a chat model's call that was given up before it was sent."""
        self.queued = True

    def give_up(self, wire: RequestTrace) -> None:
        """Count a chat model's call that was given up: its tries, which are known, and one that was under way, which is not."""
        self.receive(Failure("timeout", "given up", cost=wire.spent))
        self.queued = True
        self.cut = self.cut or wire.cut or not wire.paced
        if self.cut and (held := self.held.get(wire.spent.unit)) is not None:  # made for one try alone
            self.held[wire.spent.unit] = attrs.evolve(held, projected=held.projected + wire.spent)

    def owed(self, said: Cost) -> dict[str, Cost]:
        """What is still to be settled in each unit, where the component itself has *said* what the whole call cost.

        Its replies are counted whether it says so or not; what it says beyond them, it had elsewhere.
        """
        inside, received = self.settled[said.unit].amount, self.received[said.unit].amount
        if inside is None or received is None or (said.amount is not None and said.amount - inside <= received):
            return self.received
        beyond = None if said.amount is None else said.amount - inside
        return {**self.received, said.unit: attrs.evolve(said, amount=beyond)}


SCOPE: ContextVar[CallScope | None] = ContextVar("dicast_scope", default=None)
"""The call that is under way in the current task: how what is inside a component knows whose it is. None inside a model."""


@contextmanager
def under_way(scope: CallScope | None) -> Iterator[None]:
    """Let what is inside a component find *scope* while the block runs."""
    token = SCOPE.set(scope)
    try:
        yield
    finally:
        SCOPE.reset(token)


@attrs.frozen
class MeteredModel:
    """A chat model inside a component: its replies are counted, and whatever it raises is an answer."""

    live: ChatModel
    _units: set[str] = attrs.field(init=False, factory=set, eq=False, repr=False)  # that it has announced costs in

    def estimate(self, request: ChatRequest) -> Cost:
        """What the call would cost at most, for the rollout that is under way."""
        scope = SCOPE.get()
        return estimate(self.live, request if scope is None else attrs.evolve(request, rollout=scope.rollout))

    async def complete(self, request: ChatRequest) -> Reply | Failure:
        """Ask the chat model on behalf of the call that is under way."""
        scope = SCOPE.get()
        if scope is None:  # asked by another chat model, whose reply is counted
            return written(await maybe_await(self.live.complete(request)), self.live)
        request = request if request.rollout == scope.rollout else attrs.evolve(request, rollout=scope.rollout)
        async with call_turn(scope.give_up_unsent):
            if not self._units or not scope.held.keys() >= self._units:
                self._units.add((projected := estimate(self.live, request)).unit)
                async with scope.covering:  # one reservation a unit, however many models it asks at once
                    refused = await scope.asker.cover(scope, projected)
                if refused is not None:
                    return refused
            return await completed(self.live, request, scope)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.live, name)


async def completed(model: ChatModel, request: ChatRequest, scope: CallScope) -> Reply | Failure:
    """What *model* answers for the call *scope*, whatever it raises.

    *scope* notes what came back and what it cost, what was given up, and what ended without an answer.
    """
    token = WIRE.set(wire := RequestTrace())
    with under_way(None):
        try:
            answer: object = await maybe_await(model.complete(request))
        except asyncio.CancelledError:
            scope.give_up(wire)
            raise
        except AccessRefused as error:
            scope.receive(Failure("refused", str(error), cost=error.cost or Cost.zero()))
            raise
        except Interrupted:
            raise
        except TimeoutError as error:
            scope.cut = True
            return Failure("timeout", str(error) or "the chat model did not answer in time", retryable=True)
        except Exception as error:  # the border to a plugin's code
            scope.cut = True
            return Failure("judge_call_failed", f"{type(error).__name__}: {error}")
        finally:
            WIRE.reset(token)
    if not isinstance(answer, Reply | Failure):
        return Failure("judge_call_failed", f"the chat model returned {type(answer).__name__}, not a Reply")
    scope.receive(answer := written(answer, model))
    return answer


def written(answer: Reply | Failure, model: ChatModel) -> Reply | Failure:
    """*answer* as it can be written, for ledgers keep it, and a record has what it reports: half a character in its text as an escape.

    A Failure where anything else in a reply cannot be written.
    """
    if not isinstance(answer, Reply):
        return answer
    try:
        orjson.dumps(unstructure(answer), lambda mapping: {**mapping})
    except TypeError as error:
        text = answer.text.__class__ is str and answer.text.encode(errors="backslashreplace").decode()
        if text and text != answer.text:
            return written(attrs.evolve(answer, text=text), model)
        who = f"{type(model).__module__}.{type(model).__qualname__}"
        return Failure("crashed", f"the chat model {who} made a reply that is not JSON: {error}", cost=answer.cost)
    return answer


@attrs.frozen
class Nested:
    """A judge inside a component: asked like any other, with what it costs reserved and settled by itself."""

    live: Judge
    call: Call

    def judge(
        self, subject: Subject, children: Sequence[Verdict]
    ) -> Judgment | Failure | Awaitable[Judgment | Failure]:
        """Ask the judge on behalf of the call that is under way."""
        scope = SCOPE.get()
        assert scope is not None  # no chat model asks a judge
        answer: Judgment | Failure | Awaitable[Judgment | Failure] = scope.asker.ask_inside(
            self.call, subject, children, scope
        )
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.live, name)


async def open_call(slot: Slot, opener: Opener, model: Callable[[ChatModel], object] = MeteredModel) -> Call:
    """Open the component of *slot*, and put the kernel between it and the judges and chat models inside, as a *model*."""
    wrapped: list[str] = []

    def wrap(live: Any, at: str) -> Any:
        if not isinstance(live, ChatModel | Judge):
            return live
        nests = any(path.startswith(at) for path in wrapped)
        wrapped.append(at)
        if isinstance(live, ChatModel):
            return model(live)
        inner = attrs.evolve(slot, label=slot.label + at, path=slot.path + at, kind="judge", retries=0, range=None)
        return Nested(live, Call.of(inner, live, nests=nests))

    live = await opener.open(slot.component, wrap)
    return Call.of(slot, live, nests=bool(wrapped))
