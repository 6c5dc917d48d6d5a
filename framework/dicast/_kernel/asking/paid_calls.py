"""Calls of components about one subject for one unit: money is reserved before and settled after, and nothing is bought twice."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

from ..classes import evolve, frozen
from ..plan.sections import Slot
from ..timing.turns import call_turn, holding
from ..values import Cost, Failure, Judgment, Refusal, Rubric, Score, Subject
from ..values.endpoint_errors import AccessRefused
from ..values.json_form import structure, unstructure
from ..values.score import zero_costs
from .budget import NO_ESTIMATE, BudgetGate, Reservation
from .call import Call, Caller, Children, as_score, no_output
from .call_scope import SCOPE, Asker, CallScope, throttled
from .scoring import Answer, Skip

if TYPE_CHECKING:
    from .earlier_units import EarlierUnits, ReplyKey

Payload = dict[str, Any]
Answered = Score | Judgment | Failure


@frozen
class Later:
    """Answer that is requested when it is awaited, or never if the run ends earlier."""

    ask: Callable[[], Coroutine[Any, Any, Answer]]

    def __await__(self) -> Generator[Any, Any, Answer]:
        return self.ask().__await__()


@frozen(eq=False)
class DirectAnswers:
    """Answers about a subject whose metrics were called before its unit judges it.

    *answers* are by the path of the metric; these metrics are not called again. *seconds* is the time that the calls took.
    """

    answers: Mapping[str, Any]
    seconds: float


NOT_CALLED = DirectAnswers({}, 0.0)
"""The answers of a subject whose metrics were not called yet."""

UNPAID = zero_costs()
"""Cost of a verdict before the first call."""


class PaidCalls(Asker):
    """Calls of components about one subject for one unit."""

    def __init__(
        self, run: RunServices, label: str, eval_id: str, children: Children, ready: DirectAnswers = NOT_CALLED
    ) -> None:
        self._run, self._label, self._eval_id, self._children = run, label, eval_id, children
        self._ready = ready.answers
        self._budget = run.budget
        self.bill = {**UNPAID}
        self.models: set[str] = set()
        self.answered: dict[str, set[str]] = {}
        self.adapted: dict[str, set[str]] = {}
        self._reserved: dict[str, Reservation] = {}

    async def admit(self, slots: Iterable[Slot], subject: Subject) -> Skip | None:
        """Reserve the cost of a rollout for all *slots*; return a Skip if the remaining budget is too small for all."""
        caller, costs, seconds, lasting = self._run.caller, dict[str, Cost](), 0.0, set[str]()
        for call in (self._run.calls[slot.path] for slot in slots):
            cost = caller.estimate(call, subject)
            key = (subject.kind, subject.id, self._label, call.slot.label, 0)
            if isinstance(cost, Cost) and cost.amount and self._run.kept_reply(key, call) is None:
                costs[call.slot.path] = cost
                seconds += max(call.seconds, call.lasting)
                lasting |= {call.slot.path} if call.lasting else set()
        reservations = await self._budget.admit(subject, self._eval_id, costs, seconds, lasting)
        if isinstance(reservations, Refusal):
            none = Cost.zero(reservations.cap.limit.unit)
            return Skip(reservations.cap.reason, sum((cost for cost in costs.values() if cost.unit == none.unit), none))
        self._reserved.update(reservations)
        return None

    def dismiss(self) -> None:
        """Release the reservations of calls that were not made."""
        while self._reserved:
            self._budget.release(self._reserved.popitem()[1])

    def ask(self, slot: Slot, subject: Subject, rollout: int) -> Answer | Awaitable[Answer]:
        """Call a metric; a judge's answer counts as a score. A quick and free call answers without waiting."""
        run, path = self._run, slot.path
        call = run.calls[path]
        if path in self._ready:
            answer = self._ready[path]
        elif self._is_plain(call):
            answer = run.caller.call_def(call, subject, self._children)
        else:
            return Later(partial(self._ask_score, slot, subject, rollout))
        if isinstance(answer, Score) and (answer.cost is UNPAID["usd"] or answer.cost.is_zero):
            return answer
        return Later(partial(self._as_score, call, subject, rollout, answer))

    def _is_plain(self, call: Call) -> bool:
        """Return whether *call* is one plain call: without an earlier payment, and without a reservation."""
        return call.quick and self._run.spool is None and call.slot.path not in self._budget.highest_costs

    async def _ask_score(self, slot: Slot, subject: Subject, rollout: int) -> Answer:
        answer = await self.ask_raw(slot, subject, rollout)
        return as_score(answer) if isinstance(answer, Judgment) else answer

    async def _as_score(
        self, call: Call, subject: Subject, rollout: int, answer: Score | Judgment | Failure | Awaitable[object]
    ) -> Answer:
        result = self._settle_answer(
            call, self._scope(call, subject, rollout), await self._run.caller.answered(call, answer)
        )
        return as_score(result) if isinstance(result, Judgment) else result

    async def ask_raw(self, slot: Slot, subject: Subject, rollout: int) -> Answered | Skip:
        """Call a component, and again while its failure is retryable and the slot has retries left."""
        call = self._run.calls[slot.path]
        if self._is_plain(call):
            result: Answered = await self._run.caller.call(call, subject, self._children)
            if result.cost is UNPAID["usd"] and not (isinstance(result, Judgment) and result.judge_model):
                return result
            return self._settle_answer(call, self._scope(call, subject, rollout), result)
        for _ in range(slot.retries):
            answer = await self._once(call, self._children, self._scope(call, subject, rollout))
            if not isinstance(answer, Failure) or not answer.retryable:
                return answer
        return await self._once(call, self._children, self._scope(call, subject, rollout))

    def ask_inside(
        self, call: Call, subject: Subject, children: Children, around: CallScope
    ) -> Answered | Awaitable[Answered]:
        """Call a judge inside the component whose call is *around*."""
        call = evolve(call, seconds=min(call.seconds, around.seconds_inside))
        if self._is_plain(call):
            answer = self._run.caller.call_def(call, subject, children)
            if isinstance(answer, Judgment | Failure) and answer.cost.is_zero:
                return answer
            return self._inside(call, subject, children, around, answer)
        return self._inside(call, subject, children, around)

    async def _inside(
        self,
        call: Call,
        subject: Subject,
        children: Children,
        around: CallScope,
        pending: Answered | Awaitable[object] | None = None,
    ) -> Answered:
        scope = self._scope(call, subject, around.rollout, around)
        if pending is None:
            async with call_turn():
                call = evolve(call, seconds=min(call.seconds, around.seconds_inside))
                answer = await self._once(call, children, scope)
        else:
            answer = self._settle_answer(call, scope, await self._run.caller.answered(call, pending))
        if isinstance(answer, Skip):
            return throttled(answer)
        for cost in scope.spent or (answer.cost,):
            around.settled[cost.unit] += cost
        return answer

    async def _once(self, call: Call, children: Children, scope: CallScope) -> Answered | Skip:
        subject = scope.subject
        stored = self._run.kept_reply((subject.kind, subject.id, self._label, call.slot.label, scope.rollout), call)
        if stored is not None:
            answer, scope.spent, adapted = stored
            scope.adapted.update(adapted)
            for cost in scope.spent:
                self.bill[cost.unit] += cost
            self._note_model(call, answer, scope)
            return answer
        if call.lacks_output(subject, children):  # before anything is reserved
            return no_output(subject)
        if not call.is_unproven or call.elsewhere is not None:
            return await self._pay(call, children, scope)
        async with self._budget.first_alone(call.slot.path):
            return await self._pay(call, children, scope)

    async def _pay(self, call: Call, children: Children, scope: CallScope) -> Answered | Skip:
        """Reserve the cost of *call*, make the call, and settle it."""
        subject = scope.subject
        scope.estimate = partial(self._run.caller.estimate, call, subject)
        with holding(SCOPE, scope):
            projected = scope.estimate()
        if isinstance(projected, Failure):
            return projected
        scope.until = time.monotonic() + call.seconds
        if scope.around is None and (reservation := self._reserved.pop(call.slot.path, None)) is not None:
            scope.reserved[reservation.projected.unit] = reservation
        if projected.is_zero and (
            unannounced := self._budget.refuse_unannounced(call.slot.path, call.slot.label, subject)
        ):
            skip = Skip(NO_ESTIMATE, self._budget.unannounced[call.slot.path])
            return unannounced if call.fallback is None else await self._fallback(call, children, scope, skip)
        projected = self._budget.projected(call.slot.path, projected)
        if (refused := await self.cover(scope, projected)) is not None:
            return await self._fallback(call, children, scope, Skip(str(refused.throttled_reason), projected))
        try:
            with holding(SCOPE, scope):
                answer = await self._run.caller.call(call, subject, children)
        except BaseException as error:
            self._break_off(call, scope, error)
            raise
        result = self._settle_answer(call, scope, answer)
        if call.fallback is None or not isinstance(result, Failure) or result.throttled_reason is None:
            return result
        return await self._fallback(call, children, scope, Skip(result.throttled_reason, projected))

    def _break_off(self, call: Call, scope: CallScope, error: BaseException) -> None:
        """Settle a call that was refused access or abandoned. Requests without a reply may have been paid too.

        A call that waits for a batch keeps its reservation: a process that resumes the run takes the reply.
        """
        if scope.waits and scope.lasting:
            return
        if (scope.queued or isinstance(error.__cause__, AccessRefused)) and not scope.cut:
            self._settle_answer(call, scope, Failure("refused", str(error)))
        else:
            self._budget.forfeit(*scope.reserved.values())

    async def _fallback(self, call: Call, children: Children, scope: CallScope, skip: Skip) -> Answered | Skip:
        """Call the fallback judge, because a cap forbids the call; its verdict has the reason."""
        if call.fallback is None:
            return skip
        with holding(SCOPE, scope):
            answer = await call.fallback.judge(scope.subject, children)
        if isinstance(answer, Judgment):
            reasons = {"throttled_reason": skip.reason, "escalation_skipped": "budget_exhausted"}
            return evolve(answer, signals={**answer.signals, **reasons})
        return answer

    def _settle_answer(self, call: Call, scope: CallScope, answer: Answered) -> Answered:
        """Settle the cost of *answer* in place of the reservation; return the answer with the whole cost."""
        self._note_model(call, answer, scope)
        if scope.reserved and _is_cost_unknown(answer, scope):
            self._budget.forfeit(*scope.reserved.values())  # the reservations covered the received replies too
            return answer
        has_own_price = isinstance(answer, Judgment) and not answer.includes_replies
        owed, answer_unit = scope.owed(answer.cost, has_own_price=has_own_price), answer.cost.unit
        totals = (owed[unit] + scope.settled[unit] for unit in dict.fromkeys((answer_unit, *owed)))
        scope.spent = tuple(cost for cost in totals if not cost.is_zero)
        answer = _with_cost(answer, next(iter(scope.spent), Cost.zero(answer_unit)))
        spent = scope.calls or not all(cost.is_zero for cost in owed.values())
        if spent or (scope.reserved and not isinstance(answer, Failure)):
            self.settle(scope, owed, **_stored_answer(answer, scope))
        elif scope.reserved:
            self._budget.release(*scope.reserved.values())
        return answer

    def _note_model(self, call: Call, answer: Answered, scope: CallScope) -> None:
        """Note the model that answered *call*; for a judge of judges, each nested judge notes its own."""
        judge_model = answer.judge_model if isinstance(answer, Judgment) else None
        self.models |= {model for model in (scope.model, judge_model) if model}
        if own_model := scope.model or (None if call.nests else judge_model):
            self.answered.setdefault(call.slot.label, set()).add(own_model)
        if scope.adapted:
            self.adapted.setdefault(call.slot.label, set()).update(scope.adapted)

    def settle(self, scope: CallScope, owed: Mapping[str, Cost], **answered: Any) -> None:
        """Settle as every asker does, and add the cost to the bill."""
        for unit, cost in owed.items():
            if unit in scope.reserved or not cost.is_zero:
                self.bill[unit] += cost
        super().settle(scope, owed, **answered)

    def _scope(self, call: Call, subject: Subject, rollout: int, around: CallScope | None = None) -> CallScope:
        path, label = call.slot.path, call.slot.label
        return CallScope(self, subject, rollout, path, self._label, label, around, lasting=call.lasting)


def _stored_answer(answer: Answered, scope: CallScope) -> Payload:
    """Return the part of *answer* that is stored, so that a resumed run need not buy it again."""
    other_costs = {"also": [unstructure(cost) for cost in scope.spent[1:]]} if scope.spent[1:] else {}
    if isinstance(answer, Failure):
        return other_costs
    model = scope.model or (answer.judge_model if isinstance(answer, Judgment) else None)
    reply = unstructure(_without_rubric_text(answer))
    reply.pop("includes_replies", None)  # the cost is complete by now
    reply |= {"adapted": sorted(scope.adapted)} if scope.adapted else {}
    return {"model": model, "reply": reply, **other_costs}


COST_UNKNOWN = ("timeout", "crashed", "invalid_score")
"""Kinds of failures that the kernel finds, not the component. The cost of such a call is unknown."""


def _is_cost_unknown(answer: Answered, scope: CallScope) -> bool:
    """Return whether the cost of a failed call is unknown: a request ended without an answer, or its component gave no answer of its own."""
    if not isinstance(answer, Failure) or not (answer.cost.is_zero or scope.again):  # earlier costs were settled then
        return False
    is_known = scope.calls or (scope.queued and answer.kind == "timeout")
    return scope.cut or (answer.kind in COST_UNKNOWN and not is_known)


def _without_rubric_text(answer: Answered) -> Answered:
    """Return *answer* with the name of its rubric alone: the slot's fingerprint covers the text."""
    if not isinstance(answer, Judgment) or answer.rubric is None:
        return answer
    return evolve(answer, rubric=Rubric(answer.rubric.id, answer.rubric.version))


def _with_cost(answer: Answered, cost: Cost) -> Answered:
    if isinstance(answer, Judgment) and not answer.includes_replies and not cost.is_zero:
        return evolve(answer, cost=cost, includes_replies=True)  # an enclosing judge may return it as its own
    return answer if answer.cost == cost else evolve(answer, cost=cost)


@frozen
class RunServices:
    """Services for every unit of a run: the components, the money, and the purchases of an earlier process."""

    calls: Mapping[str, Call]
    caller: Caller
    budget: BudgetGate
    spool: EarlierUnits | None

    def kept_reply(
        self, key: ReplyKey, call: Call
    ) -> tuple[Score | Judgment, tuple[Cost, ...], tuple[str, ...]] | None:
        """Return the answer that an earlier process of this run paid for, its cost in each unit, and its adapted parameters."""
        stored = None if self.spool is None else self.spool.reply(key)
        if stored is None:
            return None
        reply, *other_costs = orjson.loads(stored)
        adapted = tuple(reply.pop("adapted", ()))
        answer: Score | Judgment = structure(reply, call.expects)
        return answer, (answer.cost, *(structure(cost, Cost) for cost in other_costs)), adapted
