"""Asks components about one subject for one unit: money reserved before and settled after, nothing bought twice."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Mapping
from typing import Any

import attrs
import orjson

from ..budget import Purse, Reservation
from ..converter import structure, unstructure
from ..define import maybe_await
from ..errors import AccessRefused
from ..model import Cost, Failure, Judgment, Refusal, Score, Subject
from ..scoring import Answer, Skip
from ..sections import Slot
from ..spool import ReplyKey, UnitSpool
from .calls import Call, Caller, Children, as_score
from .nesting import Bill, Scope, under_way

Payload = dict[str, Any]
Answered = Score | Judgment | Failure


class Teller:
    """Asks components about one subject for one unit."""

    def __init__(self, desk: Desk, label: str, eval_id: str, children: Children) -> None:
        self._desk, self._label, self._eval_id, self._children = desk, label, eval_id, children
        self.bill = Bill()

    def ask(self, slot: Slot, subject: Subject, rollout: int) -> Answer | Awaitable[Answer]:
        """Ask a metric; a judge's answer counts as a score. What is quick and free answers without waiting."""
        call = self._desk.calls[slot.path]
        if not call.quick or self._desk.careful(slot):
            return self._ask_score(slot, subject, rollout)
        answer = self._desk.caller.call_def(call, subject, self._children)
        if isinstance(answer, Score) and answer.cost.is_zero:
            return answer
        return self._as_score(call, subject, rollout, answer)

    async def _ask_score(self, slot: Slot, subject: Subject, rollout: int) -> Answer:
        answer = await self.ask_raw(slot, subject, rollout)
        return as_score(answer) if isinstance(answer, Judgment) else answer

    async def _as_score(
        self, call: Call, subject: Subject, rollout: int, answer: Score | Judgment | Failure | Awaitable[object]
    ) -> Answer:
        scope = Scope(self, rollout)
        heard = self._closed(call, subject, scope, None, await self._desk.caller.heard(call, answer))
        return as_score(heard) if isinstance(heard, Judgment) else heard

    async def ask_raw(self, slot: Slot, subject: Subject, rollout: int) -> Answered | Skip:
        """Ask a component, again while its failure is retryable and the slot has retries left."""
        call = self._desk.calls[slot.path]
        for _ in range(slot.retries):
            answer = await self._once(call, subject, self._children, Scope(self, rollout))
            if not isinstance(answer, Failure) or not answer.retryable:
                return answer
        return await self._once(call, subject, self._children, Scope(self, rollout))

    def ask_inside(
        self, call: Call, subject: Subject, children: Children, around: Scope
    ) -> Answered | Awaitable[Answered]:
        """Ask a judge that is inside the component whose call is *around*."""
        call = attrs.evolve(call, seconds=min(call.seconds, around.seconds_inside))
        if call.quick and self._desk.spool is None:
            answer = self._desk.caller.call_def(call, subject, children)
            if isinstance(answer, Judgment | Failure) and answer.cost.is_zero:
                return answer
            return self._inside(call, subject, children, around, answer)
        return self._inside(call, subject, children, around)

    async def _inside(
        self,
        call: Call,
        subject: Subject,
        children: Children,
        around: Scope,
        begun: Answered | Awaitable[object] | None = None,
    ) -> Answered:
        scope = Scope(self, around.rollout)
        if begun is None:
            answer = await self._once(call, subject, children, scope)
        else:
            answer = self._closed(call, subject, scope, None, await self._desk.caller.heard(call, begun))
        if isinstance(answer, Skip):
            return throttled(answer)
        around.settled.add(answer.cost)
        return answer

    async def _once(self, call: Call, subject: Subject, children: Children, scope: Scope) -> Answered | Skip:
        kept = self._desk.kept_reply((subject.kind, subject.id, self._label, call.slot.label, scope.rollout), call)
        if kept is not None:
            self.bill.add(kept.cost)
            return kept
        with under_way(scope):
            projected = self._desk.caller.estimate(call, subject)
        if isinstance(projected, Failure):
            return projected
        if projected.is_zero:
            projected = self._desk.purse.expected(call.slot.path)
        if projected.is_zero:
            return self._closed(call, subject, scope, None, await self._heard(call, subject, children, scope))
        if projected.amount is None:
            return await self._fallback(call, subject, children, scope, "unknown_price")
        held = await self._desk.purse.reserve(subject, self._eval_id, projected, call.seconds)
        if isinstance(held, Refusal):
            return await self._fallback(call, subject, children, scope, held.cap.reason)
        return await self._bought(call, subject, children, scope, held)

    async def _bought(
        self, call: Call, subject: Subject, children: Children, scope: Scope, held: Reservation
    ) -> Answered:
        try:
            answer = await self._heard(call, subject, children, scope)
        except BaseException as error:
            if isinstance(error.__cause__, AccessRefused) and scope.heard.is_zero:
                self._desk.purse.release(held)
            else:
                self._desk.purse.forfeit(held)
            raise
        return self._closed(call, subject, scope, held, answer)

    async def _heard(self, call: Call, subject: Subject, children: Children, scope: Scope) -> Answered:
        if not call.nests:
            return await self._desk.caller.call(call, subject, children)
        scope.until = time.monotonic() + call.seconds
        with under_way(scope):
            return await self._desk.caller.call(call, subject, children)

    async def _fallback(
        self, call: Call, subject: Subject, children: Children, scope: Scope, reason: str
    ) -> Answered | Skip:
        """Ask the judge that stands in where a cap leaves no room; its verdict says so."""
        if call.fallback is None:
            return Skip(reason)
        with under_way(scope):
            answer = await maybe_await(call.fallback.judge(subject, children))
        if isinstance(answer, Judgment):
            why = {"throttled_reason": reason, "escalation_skipped": "budget_exhausted"}
            return attrs.evolve(answer, signals={**answer.signals, **why})
        return answer

    def _closed(
        self, call: Call, subject: Subject, scope: Scope, held: Reservation | None, answer: Answered
    ) -> Answered:
        """Settle what *answer* cost, in place of the reservation *held*; the answer says then what all of it cost."""
        purse = self._desk.purse
        if held is not None and _unpriced(answer, scope):
            (purse.forfeit if getattr(answer, "kind", "") in _UNHEARD else purse.release)(held)
            return answer
        owed = scope.owed(answer.cost)
        self.bill.add(owed)
        answer = _costing(answer, owed + scope.settled.of(owed.unit))
        bought = self._reply(call, scope, answer)
        if held is not None:
            purse.settle(held, owed, bought)
        elif not owed.is_zero:
            purse.charge(subject, self._eval_id, owed, bought, call.slot.path)
        elif scope.calls:
            purse.note(subject, self._eval_id, bought)
        return answer

    def _reply(self, call: Call, scope: Scope, answer: Answered) -> Payload:
        """What was bought, so that a resumed run need not buy it again."""
        return {
            "model": scope.model or (answer.judge_model if isinstance(answer, Judgment) else None),
            "calls": scope.calls,
            "tokens": scope.tokens,
            "judge": self._label,
            "metric": call.slot.label,
            "rollout": scope.rollout,
            "reply": None if isinstance(answer, Failure) else unstructure(answer),
        }


_UNHEARD = ("timeout", "crashed", "invalid_score")
"""Failures that the kernel finds: what such a call did cost, nobody has said."""


def _unpriced(answer: Answered, scope: Scope) -> bool:
    """Whether nobody has said what a failed call cost: neither its component, nor all the chat models it asked."""
    if not isinstance(answer, Failure) or not answer.cost.is_zero:
        return False
    return answer.kind == "timeout" or scope.heard.is_zero


def _costing(answer: Answered, cost: Cost) -> Answered:
    return answer if answer.cost == cost else attrs.evolve(answer, cost=cost)


def throttled(skip: Skip) -> Failure:
    """What a judge's subject ends in when there is no room for its call."""
    message = f"no room for this call ({skip.reason}) and no judge to fall back on"
    return Failure("throttled_no_heuristic", message, throttled_reason=skip.reason)


@attrs.frozen
class Desk:
    """What every unit of a run needs: the components made ready, the money, and what an earlier process has bought."""

    calls: Mapping[str, Call]
    caller: Caller
    purse: Purse
    spool: UnitSpool | None

    def careful(self, slot: Slot) -> bool:
        """Whether asking *slot* may not be one plain call after all: it was paid before, or costs without saying so."""
        return self.spool is not None or slot.path in self.purse.dearest

    def kept_reply(self, key: ReplyKey, call: Call) -> Score | Judgment | None:
        """The answer that an earlier process of this run paid for, if there is one."""
        reply = None if self.spool is None else self.spool.reply(key)
        return None if reply is None else structure(orjson.loads(reply), call.expects)
