"""Production of outputs: the calls of a run's task for each subject, and their results.

Every reply that a task buys is reserved, settled and kept separately, so that a run that was killed in the middle of a subject
does not buy it again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import orjson

from ..classes import evolve, frozen
from ..contract.protocols import ChatModel, estimate
from ..events import RECORD_COMPLETED, RECORD_FAILED, TASK_REPLIED
from ..plan.sections import RECORD
from ..stream.stream import Stream
from ..timing.turns import call_turn, holding
from ..values import Answered, ChatRequest, Cost, Event, Failure, Reply, Subject
from ..values.endpoint_errors import AccessRefused
from ..values.errors import InvalidCost
from ..values.json_form import structure, unstructure
from ..values.read_only import read_only, seal
from ..values.score import zero_costs
from .budget import ESTIMATE_ADVICE, MODEL_ADVICE
from .call import Call, Caller, no_output
from .call_scope import SCOPE, Asker, CallScope
from .figures import reply_figures, response_figures
from .metering import awaited_reply, completed, written
from .paid_calls import COST_UNKNOWN, RunServices
from .record import columns, new_record, put_metrics, recorded_row


@frozen
class ReplayedModel:
    """Wrapper of a chat model inside a task: the kernel pays for each reply and records it, so that a resumed run reuses it."""

    live: ChatModel
    component: ChatModel
    """The component that *live* was opened from."""

    async def complete(self, request: ChatRequest) -> Reply | Failure:
        """Call the chat model on behalf of the active task."""
        scope = SCOPE.get()
        # Called by another chat model, whose reply is counted.
        if scope is None or not isinstance(scope.asker, TaskReplies):
            return written(await awaited_reply(self.live, request), self.live)
        return await scope.asker.buy(self.live, request, self.component)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.live, name)


class TaskReplies(Asker):
    """Purchases of replies for the *call* of a task, about *subject* in one rollout, over all tries of the call."""

    def __init__(self, run: RunServices, stream: Stream, call: Call, subject: Subject, rollout: int) -> None:
        self.call, self.subject = call, subject
        self._run, self._stream, self._rollout = run, stream, rollout
        self._budget, self._eval_id = run.budget, None
        self._bought: dict[str, Reply] = {}
        self._failed: list[Cost] = []  # the costs of requests without a reply
        self.adapted: set[str] = set()
        self._request_counts: Counter[str] = Counter()

    def begin(self) -> CallScope:
        """Start a new try, which reuses the replies of earlier tries."""
        self._request_counts.clear()
        return self._scope()

    async def produce(self, caller: Caller) -> Subject | Failure:
        """Call the task once. Its own payments are reserved before the call and settled after it."""
        if self.call.nests or not self.call.is_unproven:
            return await self._produce(caller)
        async with self._budget.first_alone(self.call.slot.path):
            return await self._produce(caller)

    async def _produce(self, caller: Caller) -> Subject | Failure:
        with holding(SCOPE, scope := self.begin()):
            if (refused := await self._reserve_estimate(caller, scope)) is not None:
                return refused
            try:
                answer: Subject | Failure = await caller.call(self.call, self.subject)
            except BaseException:
                self._budget.forfeit(*scope.reserved.values())
                raise
            try:
                self._settle_own(scope, answer)
            except InvalidCost as error:
                self._budget.forfeit(*scope.reserved.values())
                return Failure("crashed", f"metrics.cost of a response: {error}")
            return answer

    async def _reserve_estimate(self, caller: Caller, scope: CallScope) -> Failure | None:
        """Reserve the estimate of a task without chat models; return a Failure if a paid call has no estimate, or the remaining budget is too small."""
        projected = Cost.zero() if self.call.nests else caller.estimate(self.call, self.subject)
        if isinstance(projected, Failure):
            return projected
        if projected.is_zero:
            advice = MODEL_ADVICE if self.call.nests else ESTIMATE_ADVICE
            refused = self._budget.refuse_unannounced(self.call.slot.path, self.call.slot.label, self.subject, advice)
            if refused is not None or self.call.nests:
                return refused  # each request of a model has a reservation of its own
        return await self.cover(scope, self._budget.projected(self.call.slot.path, projected))

    def _settle_own(self, scope: CallScope, answer: Subject | Failure) -> None:
        cost = self._own_cost(answer)
        if not cost.is_zero or (scope.reserved and isinstance(answer, Subject)):
            self.settle(scope, {**zero_costs(), cost.unit: cost})
        elif isinstance(answer, Failure) and answer.kind in COST_UNKNOWN:
            self._budget.forfeit(*scope.reserved.values())
        else:
            self._budget.release(*scope.reserved.values())

    def _own_cost(self, answer: Subject | Failure) -> Cost:
        """Return the payments that the task reports in addition to the replies that it bought."""
        if isinstance(answer, Failure):
            costs = [cost for cost in self._costs() if cost.unit == answer.cost.unit]
            paid = sum(costs, Cost.zero(answer.cost.unit)).amount
            if answer.cost.amount is None or paid is None or not costs:
                return answer.cost if not costs else Cost.zero(answer.cost.unit)
            return evolve(answer.cost, amount=max(answer.cost.amount - paid, paid - paid))
        if self.call.nests or self.call.estimate is None or not isinstance(answer, Answered):
            return Cost.zero()
        responses: object = answer.responses  # a task may return anything
        values = responses.values() if isinstance(responses, Mapping) else ()
        return sum((Cost(str(response_figures(value).get("cost", 0))) for value in values), Cost.zero())

    def _costs(self) -> list[Cost]:
        return [*(reply.cost for reply in self._bought.values()), *self._failed]

    async def buy(self, model: ChatModel, request: ChatRequest, component: ChatModel) -> Reply | Failure:
        """Return the reply of *model* to *request*; a reply that was bought earlier is reused. *model* was opened from *component*."""
        request = request if request.rollout == self._rollout else evolve(request, rollout=self._rollout)
        identity = getattr(model, "identity", None)
        # Without an identity, every option of the task and of its model may decide the reply.
        digest = request.digest({"task": self.call.slot.fingerprint} if identity is None else identity())
        request_key = f"{request.label}:{digest}"
        self._request_counts[request_key] = number = self._request_counts[request_key] + 1
        key = f"{request_key}:{number}"
        if (stored := self._stored_reply(key)) is not None:
            self._bought[key] = stored
            self.adapted.update(stored.adapted)
            return stored
        async with call_turn():
            projected = estimate(model if hasattr(model, "estimate") else component, request)
            details = {"criterion": request.label, "request_digest": digest, "number": number}
            if not self.call.is_unproven:
                return await self._buy(model, request, key, details, projected)
            async with self._budget.first_alone(self.call.slot.path):
                return await self._buy(model, request, key, details, projected)

    async def _buy(
        self, model: ChatModel, request: ChatRequest, key: str, details: Mapping[str, object], projected: Cost
    ) -> Reply | Failure:
        scope = self._scope(request.label)
        path, label = self.call.slot.path, self.call.slot.label
        refuse = self._budget.refuse_unannounced
        if projected.is_zero and (unannounced := refuse(path, label, self.subject, MODEL_ADVICE)):
            return unannounced
        projected = self._budget.projected(path, projected)
        if (refused := await self.cover(scope, projected)) is not None:
            return refused
        began = time.monotonic()
        try:
            answer = await completed(model, request, scope)
        except BaseException as error:
            self._break_off(scope, error)
            raise
        self._close(scope, answer)
        self.adapted.update(answer.adapted)
        if isinstance(answer, Reply):
            seconds = {"latency_seconds": round(time.monotonic() - began, 6)}  # a stored reply comes at once
            answer = self._bought[key] = evolve(answer, metrics={**seconds, **answer.metrics})
            self._emit_reply(details, answer)
        return answer

    def requests(self, failure: Failure) -> list[dict[str, object]]:
        """Return the figures of each request, by criterion, of a row that ended in *failure*, whose cost includes all replies."""
        figures: dict[str, dict[str, Any]] = {}
        total = Cost.zero(failure.cost.unit)
        for key, reply in self._bought.items():
            sums = figures.setdefault(key.rsplit(":", 2)[0], {})
            for name, value in reply_figures(reply).items():
                sums[name] = sums.get(name, 0) + value
            total += reply.cost if reply.cost.unit == total.unit else Cost.zero(total.unit)
        if failure.cost.unit == "usd" and failure.cost.amount is not None and total.amount is not None:
            rest = failure.cost.amount - total.amount
            figures |= {"": {"cost": float(rest)}} if rest > 0 else {}
        return [*figures.values()]

    def _emit_reply(self, details: Mapping[str, object], reply: Reply) -> None:
        payload = {**details, "rollout": self._rollout, "reply": unstructure(reply)}
        self._stream.emit([self._stream.event(TASK_REPLIED, payload, self.subject, "user_controlled")])
        self._stream.commit_soon()

    def _scope(self, criterion: str = "") -> CallScope:
        slot, until = self.call.slot, time.monotonic() + self.call.seconds
        of = (self.subject, self._rollout, slot.path, slot.label, criterion)
        return CallScope(self, *of, until=until, lasting=self.call.lasting)

    def _stored_reply(self, key: str) -> Reply | None:
        """Return the reply that was bought under *key*, by this process or by an earlier one of this run; None if there is none."""
        subject, spool = self.subject, self._run.spool
        if key in self._bought or spool is None:
            return self._bought.get(key)
        reply = spool.reply((subject.kind, subject.id, RECORD, key, self._rollout))
        return None if reply is None else structure(orjson.loads(reply), Reply)

    def ask_inside(self, call: Call, subject: Subject, children: object, around: CallScope) -> Failure:
        """Return a Failure: a task makes the judged output, and judges nothing itself."""
        return Failure(
            "refused", f"{call.slot.label}: a task cannot call a judge; list the judge under 'metrics' or 'judges'"
        )

    def _break_off(self, scope: CallScope, error: BaseException) -> None:
        """Settle a request that was refused access or abandoned; requests without a reply may have been paid too."""
        if scope.waits and scope.lasting:  # a process that resumes the run takes the reply
            return
        if isinstance(error, AccessRefused) or (scope.queued and not scope.cut):
            spent = sum(scope.received.values(), Cost.zero())  # of one model, so in one unit
            self._close(scope, Failure("refused", str(error), cost=spent))
        else:
            self._budget.forfeit(*scope.reserved.values())

    def _close(self, scope: CallScope, answer: Reply | Failure) -> None:
        """Settle the cost of the request, in place of the reservation."""
        if isinstance(answer, Failure):
            self._failed.append(answer.cost)
        if scope.reserved and isinstance(answer, Failure) and answer.cost.is_zero:
            (self._budget.forfeit if scope.cut else self._budget.release)(*scope.reserved.values())
        elif scope.reserved or scope.calls or not answer.cost.is_zero:
            self.settle(scope, {**zero_costs(), answer.cost.unit: answer.cost})


_TASK = "task"


@frozen
class Production:
    """Result of a task for a subject: an output for each rollout, or the Failure in its place, and the *event* of its record, if records are made.

    *excused* is True if a missing output counts as 0. *origin* is ``task`` if the task failed to make the output, else None.
    """

    outputs: Sequence[Subject | Failure]
    event: Event | None = None
    excused: bool = False
    origin: str | None = None


@frozen
class Producer:
    """Producer of outputs and records by *task*, if there is one, and *extractors*; *levels* are members that the task adds to every record."""

    run: RunServices
    stream: Stream
    task: Call | None
    extractors: Sequence[Call]
    rollouts: int
    levels: Mapping[str, object]
    now: Callable[[], str]

    async def make(self, subject: Subject, failure: Failure | None = None) -> Production:
        """Call the task for *subject* once for each rollout; return the outputs, and the record of the first output.

        After a *failure* of the source, call no component and return the failure.
        """
        if failure is not None:
            return Production([failure], self._failed(columns(subject), failure, subject))
        purchase = None if self.task is None else TaskReplies(self.run, self.stream, self.task, subject, 0)
        first = _with_output(subject) if purchase is None else await self._produce(purchase)
        row = columns(subject)
        record = first if isinstance(first, Failure) else await self._record(row, first, subject)
        excused = self.task is not None and self.task.slot.on_failure == "zero"
        origin = None if self.task is None else _TASK
        if isinstance(record, Failure) and not (record is first and excused):
            event = self._failed(row, record, subject, _requests(first, record, purchase))
            origin = origin if record is first else None
            return Production([record], event, origin=origin)  # further rollouts cannot change the failure
        outputs = [first]
        if self.task is not None:
            purchases = (TaskReplies(self.run, self.stream, self.task, subject, n) for n in range(1, self.rollouts))
            outputs += [await self._produce(other) for other in purchases]
        if isinstance(record, Failure):
            event = self._failed(row, record, subject, _requests(first, record, purchase))
            return Production(outputs, event, excused, origin)
        return Production(outputs, self._event(RECORD_COMPLETED, record, subject), excused, origin)

    def _failed(
        self,
        row: Mapping[str, object],
        failure: Failure,
        subject: Subject,
        requests: Sequence[Mapping[str, object]] = (),
    ) -> Event:
        payload = {
            "row": recorded_row(row),
            "error": failure.message,
            "timestamp": self.now(),
            "failure_mode": failure.kind,
        }
        optional: dict[str, object] = {} if failure.retry is None else {"retry": failure.retry}
        optional |= {"requests": requests} if requests else {}
        optional |= {"adapted": list(failure.adapted)} if failure.adapted else {}
        return self._event(RECORD_FAILED, payload | optional, subject)

    def _event(self, type_: str, payload: Mapping[str, object], subject: Subject) -> Event:
        return self.stream.event(type_, payload, subject, "user_controlled")

    async def _record(self, row: Mapping[str, object], produced: Subject, subject: Subject) -> dict[str, Any] | Failure:
        try:
            record = new_record(row, produced, self.levels)
        except TypeError as error:
            return Failure("crashed", f"{self.task and self.task.slot.label}: {error}")
        for call in self.extractors:
            answer = await self._extract(call, record, subject)
            if not isinstance(answer, Failure):
                fault = put_metrics(record, answer, call.slot.component.writes)
                answer = fault and Failure("crashed", fault)
            if isinstance(answer, Failure):
                return Failure(
                    answer.kind, f"{call.slot.label}: {answer.message}", throttled_reason=answer.throttled_reason
                )
        return record

    async def _extract(self, call: Call, record: Mapping[str, object], subject: Subject) -> Any:
        """Return the values that an extractor reads from *record*. An extractor that reports a cost is refused from then on: it has no estimate."""
        path, budget = call.slot.path, self.run.budget
        async with budget.first_alone(path) if call.is_unproven else nullcontext():
            refused = budget.refuse_unannounced(path, call.slot.label, subject, "Pay in a task, a metric or a judge")
            answer = refused or await self.run.caller.call(call, read_only(record))
            if isinstance(answer, Failure) and not answer.cost.is_zero:
                bought = {"model": None, "calls": 1, "tokens": None, "judge": RECORD, "metric": call.slot.label}
                budget.charge(subject, None, answer.cost, {**bought, "rollout": 0, "reply": None}, path)
        return answer

    async def _produce(self, purchase: TaskReplies) -> Subject | Failure:
        """Call the task of *purchase*, and again while its failure is retryable and its slot has retries left."""
        task, subject, history = purchase.call, purchase.subject, list[dict[str, object]]()
        max_attempts = task.slot.retries + 1
        while True:
            answer = await purchase.produce(self.run.caller)
            if isinstance(answer, Subject):
                return _checked_subject(answer, subject, task)
            history.append({"attempt": len(history) + 1, "error": answer.message})
            if not answer.retryable or len(history) == max_attempts:
                retry = (
                    {"attempts": len(history), "max_attempts": max_attempts, "history": history}
                    if max_attempts > 1
                    else None
                )
                adapted = tuple(sorted(purchase.adapted.union(answer.adapted)))
                return _labeled_failure(evolve(answer, retry=answer.retry or retry, adapted=adapted), task.slot.label)


def _requests(
    produced: Subject | Failure, failure: Failure, purchase: TaskReplies | None
) -> Sequence[Mapping[str, object]]:
    """Return the figures of the requests of a failed row. If a step after the task failed, they come from the *produced* output."""
    if isinstance(produced, Answered):
        responses: object = produced.responses  # a task may return anything
        values = responses.values() if isinstance(responses, Mapping) else ()
        return [figures for response in values if (figures := response_figures(response))]
    return [] if purchase is None else purchase.requests(failure)


def _with_output(subject: Subject) -> Subject | Failure:
    """Return *subject*, whose output the data has; a Failure if it has neither an output nor events."""
    return no_output(subject) if subject.output is None and not subject.events else subject


def _labeled_failure(failure: Failure, label: str) -> Failure:
    """Return *failure* with the task's *label* before its message, for the record."""
    try:
        orjson.dumps(failure.retry)
    except TypeError as error:
        message = f"{label}: {failure.message} (its retry is not JSON: {error})"
        return Failure("crashed", message, cost=failure.cost)
    return evolve(failure, message=f"{label}: {failure.message}")


def _checked_subject(produced: Subject, subject: Subject, task: Call) -> Subject | Failure:
    """Return *produced*, sealed against changes; a Failure if it is about another subject than *subject*."""
    for name in ("kind", "id", "session_id", "parent_id"):
        if getattr(produced, name) != getattr(subject, name):
            description = (
                f"a subject with the {name} {getattr(produced, name)!r:.100}, not {getattr(subject, name)!r:.100}"
            )
            return Failure("crashed", f"{task.slot.label} returned {description}")
    if subject.columns and not produced.columns:  # the task made a new subject
        produced = evolve(produced, columns=subject.columns)
    seal(produced)
    return produced
