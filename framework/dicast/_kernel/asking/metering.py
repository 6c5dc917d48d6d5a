"""Judges and chat models inside other components. The kernel wraps them, so that every call is paid for and counted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import orjson

from ...toolkit.rate_limit import WIRE, RequestTrace
from ..classes import evolve, field, frozen
from ..contract.define import maybe_await
from ..contract.implements import implements
from ..contract.plugin_errors import error_text, in_brackets, place_of
from ..contract.protocols import ChatModel, Judge, estimate
from ..plan.sections import Slot
from ..stream.opening import Opener, check_live
from ..timing.awaiting import unlimited
from ..timing.turns import call_turn, holding, resting
from ..values import ChatRequest, Cost, Failure, Judgment, Reply, Score, Subject, Verdict
from ..values.endpoint_errors import AccessRefused
from ..values.errors import Interrupted
from ..values.json_form import unstructure
from .call import Call, as_score
from .call_scope import SCOPE, CallScope


@frozen
class MeteredModel:
    """Wrapper of a chat model inside a component: it counts the replies, and turns exceptions into answers."""

    live: ChatModel
    component: ChatModel
    """The component that *live* was opened from."""
    _units: set[str] = field(init=False, factory=set, eq=False, repr=False)  # of the estimated costs

    def estimate(self, request: ChatRequest) -> Cost:
        """Return the most that *request* may cost in the current rollout."""
        scope = SCOPE.get()
        return self._estimate(request if scope is None else evolve(request, rollout=scope.rollout))

    def _estimate(self, request: ChatRequest) -> Cost:
        return estimate(self.live if hasattr(self.live, "estimate") else self.component, request)

    async def complete(self, request: ChatRequest) -> Reply | Failure:
        """Call the chat model on behalf of the active call."""
        scope = SCOPE.get()
        if scope is None:  # called by another chat model, whose reply is counted
            return written(await awaited_reply(self.live, request), self.live)
        request = request if request.rollout == scope.rollout else evolve(request, rollout=scope.rollout)
        async with call_turn(scope.give_up_unsent):
            scope.again = scope.again or request.attempt > 0
            if scope.again or not self._units or not scope.reserved.keys() >= self._units:
                self._units.add((projected := self._estimate(request)).unit)
                if scope.again and not projected.is_zero:
                    return await self._ask_again(request, scope, projected)
                async with covering(scope):  # one reservation for each unit, for any number of simultaneous requests
                    refused = await scope.asker.cover(scope, projected)
                if refused is not None:
                    return refused
            return await completed(self.live, request, scope)

    async def _ask_again(self, request: ChatRequest, scope: CallScope, projected: Cost) -> Reply | Failure:
        """Send a request whose cost *projected* was not reserved when the call started, after the other requests of the call have ended."""
        async with covering(scope):
            async with resting():
                while scope.asking:
                    await asyncio.wait(scope.asking)
            refused = await scope.asker.cover_again(scope, projected)
            return await completed(self.live, request, scope) if refused is None else refused

    def __getattr__(self, name: str) -> Any:
        return getattr(self.live, name)


def collects(model: object) -> bool:
    """Return whether the live *model* collects calls, and answers them in batches."""
    return hasattr(model, "send_collected")


async def awaited_reply(model: ChatModel, request: ChatRequest) -> Reply | Failure:
    """Return the answer of *model*. While a call waits for its batch, it holds no turn, and the time limits of the calls around it are paused."""
    if not collects(model):
        return await maybe_await(model.complete(request))
    began = time.monotonic()
    async with resting():
        with unlimited():
            try:
                return await maybe_await(model.complete(request))
            finally:
                (WIRE.get() or RequestTrace()).waited += time.monotonic() - began


@asynccontextmanager
async def covering(scope: CallScope) -> AsyncIterator[None]:
    """Hold the lock on the reservations of *scope*. A call that waits for the lock returns its turn."""
    if scope.covering.locked():
        async with resting():
            await scope.covering.acquire()
    else:
        await scope.covering.acquire()
    try:
        yield
    finally:
        scope.covering.release()


async def _cover_more(scope: CallScope, cost: Cost, spent: Cost) -> Failure | None:
    """Reserve *cost* for a request of *scope* that is more expensive than projected, after tries that cost *spent*; return a Failure if a cap forbids it."""
    async with covering(scope):
        return await scope.asker.cover_more(scope, cost, spent)


async def completed(model: ChatModel, request: ChatRequest, scope: CallScope) -> Reply | Failure:
    """Return the answer of *model* for the call *scope*; exceptions become failures.

    *scope* records the received answer with its cost, abandoned requests, and requests that ended without an answer.
    """
    scope.asking.add(end := asyncio.get_running_loop().create_future())
    with holding(WIRE, wire := RequestTrace(reserve=partial(_cover_more, scope))), holding(SCOPE, None):
        try:
            answer: object = await awaited_reply(model, request)
        except asyncio.CancelledError:
            scope.give_up(wire)
            raise
        except AccessRefused as error:
            scope.waits = scope.waits or wire.waits
            scope.receive(refused := Failure("refused", str(error), cost=error.cost or Cost.zero()))
            scope.asker.note_answer(refused)
            raise
        except Interrupted:
            raise
        except TimeoutError as error:
            return scope.cut_off(
                Failure("timeout", str(error) or "the chat model did not answer in time", retryable=True)
            )
        except Exception as error:  # the border to a plugin's code
            return scope.cut_off(Failure("judge_call_failed", f"{type(error).__name__}: {error_text(error)}"))
        finally:
            scope.prolong(wire.waited)
            scope.asking.discard(end)
            end.set_result(None)
    if not isinstance(answer, Reply | Failure):
        name, place = type(model).__qualname__, in_brackets(place_of(model.complete))
        return Failure("judge_call_failed", f"the chat model {name} returned {answer!r:.100}, not a Reply{place}")
    scope.receive(answer := written(answer, model))
    if isinstance(answer, Failure) or answer.metrics.get("cached") is not True:
        scope.asker.note_answer(answer)
    return answer


def written(answer: Reply | Failure, model: ChatModel) -> Reply | Failure:
    """Return *answer* in a form that ledgers and records can hold: lone surrogates in its text become escapes.

    Return a Failure if any other part of a reply is not JSON.
    """
    if not isinstance(answer, Reply):
        return answer
    try:
        orjson.dumps(unstructure(answer), lambda mapping: {**mapping})
    except TypeError as error:
        text = answer.text.__class__ is str and answer.text.encode(errors="backslashreplace").decode()
        if text and text != answer.text:
            return written(evolve(answer, text=text), model)
        model_name = f"{type(model).__module__}.{type(model).__qualname__}"
        return Failure(
            "crashed", f"the chat model {model_name} made a reply that is not JSON: {error}", cost=answer.cost
        )
    return answer


@frozen
class Nested:
    """Wrapper of a judge inside a component: it is called like any judge, and its cost is reserved and settled separately."""

    live: Judge
    call: Call
    slot: Slot | None = None
    """Slot of the judge as if the pipeline listed it by itself, with the fingerprint of such a slot; None if the kernel cannot compute it."""

    def judge(self, subject: Subject, children: Sequence[Verdict] = ()) -> Awaitable[Judgment | Failure]:
        """Call the judge on behalf of the active call."""
        scope = SCOPE.get()
        assert scope is not None  # no chat model calls a judge
        answer: Awaitable[Judgment | Failure] = scope.asker.ask_inside(self.call, subject, children, scope)
        return answer

    async def score(self, subject: Subject) -> Score | Failure:
        """Call the judge in the place of a metric; its judgment counts as a score."""
        answer = await self.judge(subject)
        return as_score(answer) if isinstance(answer, Judgment) else answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.live, name)


async def open_call(slot: Slot, opener: Opener, model: Callable[[ChatModel, ChatModel], object] = MeteredModel) -> Call:
    """Open the component of *slot*; nested judges and chat models are wrapped by the kernel, chat models by *model*."""
    wrapped: list[str] = []
    models: dict[str, object] = {}  # by address
    unpriced: list[str] = []

    def call_of(slot: Slot, live: Any, at: str, *, nests: bool) -> Call:
        is_priced = not any(path.startswith(at) for path in unpriced)
        return Call.of(slot, live, opener.configured(live), nests=nests, is_priced=is_priced)

    def wrap(live: Any, at: str) -> Any:
        if not (implements(live, ChatModel) or _is_judge(live)):
            return live
        nests = any(path.startswith(at) for path in wrapped)
        wrapped.append(at)
        if implements(live, ChatModel):
            models[at] = live
            opener.note_collecting(live)
            component = opener.configured(live)
            if not (hasattr(live, "estimate") or hasattr(component, "estimate")):
                unpriced.append(at)
            return model(live, component)
        inner_models = {place: models.pop(place) for place in [*models] if place.startswith(f"{at}.")}
        inner = evolve(slot, label=slot.label + at, path=slot.path + at, kind="judge", retries=0, range=None)
        call = call_of(inner, live, at, nests=nests)
        return Nested(live, evolve(call, lasting=_lasting(inner_models)), slot.inside.get(at))

    live = await opener.open(slot.component, wrap)
    check_live(slot.kind, slot.component, live)
    call = call_of(slot, live, "", nests=bool(wrapped))
    return evolve(call, lasting=_lasting(models))


def _is_judge(live: object) -> bool:
    """Return whether *live* is called as a judge. A metric may have an option named ``judge``, as ``diff/match`` has."""
    return callable(getattr(live, "judge", None)) and not callable(getattr(live, "score", None))


def _lasting(models: Mapping[str, object]) -> float:
    """Return the highest number of seconds until the replies of *models*, by address; 0 unless all of them come in batches."""
    leaves = [model for at, model in models.items() if not any(other.startswith(f"{at}.") for other in models)]
    if not leaves or not all(map(collects, leaves)):
        return 0.0
    return max(float(getattr(model, "longest_wait", 0.0)) for model in leaves)
