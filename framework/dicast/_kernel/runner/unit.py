"""One unit of work: one label's judgment of one subject, and the events it makes."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Mapping
from hashlib import sha256
from typing import Any

import attrs
import orjson

from ..budget import Purse
from ..converter import structure, unstructure
from ..model import Cost, Failure, Judgment, Refusal, Score, Subject
from ..scoring import RUBRIC_ID, RUBRIC_VERSION, Answer, Combined, MetricSet, Skip
from ..sections import Slot
from ..spool import ReplyKey, UnitSpool
from .calls import Call, Caller, Children, as_score

Payload = dict[str, Any]


@attrs.define
class Bill:
    """What one unit cost, by unit of money."""

    usd: Cost = Cost.zero()
    msat: Cost = Cost.zero("msat")

    def add(self, cost: Cost) -> None:
        """Add one call's cost."""
        if cost.unit == "usd":
            self.usd = self.usd + cost
        else:
            self.msat = self.msat + cost


class Teller:
    """Asks components about one subject for one unit, with money reserved before and settled after."""

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
        heard = await self._desk.caller.heard(call, answer)
        self._charge(call, subject, rollout, heard)
        return as_score(heard) if isinstance(heard, Judgment) else heard

    async def ask_raw(self, slot: Slot, subject: Subject, rollout: int) -> Score | Judgment | Failure | Skip:
        """Ask a component, again while its failure is retryable and the slot has retries left."""
        call = self._desk.calls[slot.path]
        for _ in range(slot.retries):
            answer = await self._once(call, subject, rollout)
            if not isinstance(answer, Failure) or not answer.retryable:
                return answer
        return await self._once(call, subject, rollout)

    async def _once(self, call: Call, subject: Subject, rollout: int) -> Score | Judgment | Failure | Skip:
        kept = self._desk.kept_reply((subject.kind, subject.id, self._label, call.slot.label, rollout), call)
        if kept is not None:
            self.bill.add(kept.cost)
            return kept
        projected = self._desk.caller.estimate(call, subject)
        if isinstance(projected, Failure):
            return projected
        if projected.is_zero:
            projected = self._desk.purse.expected(call.slot.path)
        if not projected.is_zero:
            return await self._bought(call, subject, rollout, projected)
        answer = await self._desk.caller.call(call, subject, self._children)
        self._charge(call, subject, rollout, answer)
        return answer

    def _charge(self, call: Call, subject: Subject, rollout: int, answer: Score | Judgment | Failure) -> None:
        """Record a cost that was not announced."""
        if not answer.cost.is_zero:
            self.bill.add(answer.cost)
            bought = self._reply(call, rollout, answer)
            self._desk.purse.charge(subject, self._eval_id, answer.cost, bought, call.slot.path)

    async def _bought(
        self, call: Call, subject: Subject, rollout: int, projected: Cost
    ) -> Score | Judgment | Failure | Skip:
        if projected.amount is None:
            return Skip("unknown_price")
        purse = self._desk.purse
        held = await purse.reserve(subject, self._eval_id, projected, call.seconds)
        if isinstance(held, Refusal):
            return Skip(held.cap.reason)
        try:
            answer = await self._desk.caller.call(call, subject, self._children)
        except BaseException:
            purse.forfeit(held)
            raise
        if isinstance(answer, Failure) and answer.cost.is_zero:
            (purse.forfeit if answer.kind in _UNHEARD else purse.release)(held)
        else:
            self.bill.add(answer.cost)
            purse.settle(held, answer.cost, self._reply(call, rollout, answer))
        return answer

    def _reply(self, call: Call, rollout: int, answer: Score | Judgment | Failure) -> Payload:
        """What was bought, so that a resumed run need not buy it again."""
        return {
            "model": answer.judge_model if isinstance(answer, Judgment) else None,
            "tokens": None,
            "judge": self._label,
            "metric": call.slot.label,
            "rollout": rollout,
            "reply": None if isinstance(answer, Failure) else unstructure(answer),
        }


_UNHEARD = ("timeout", "crashed", "invalid_score")
"""Failures that the kernel finds: what such a call did cost, nobody has said."""


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


@attrs.define
class Unit:
    """One label's work on subjects: *metrics* for the combined verdict, else *slot* for a judge's own."""

    label: str
    fingerprint: str
    planned: Mapping[str, object]
    metrics: MetricSet | None = None
    slot: Slot | None = None
    _by_model: dict[str | None, str] = attrs.field(factory=dict)

    async def judge(
        self, desk: Desk, subject: Subject, eval_id: str, children: Children = (), parent_eval_id: str | None = None
    ) -> tuple[str, Payload]:
        """Judge *subject*; return the type and the payload of the terminal event."""
        began = time.perf_counter()
        teller = Teller(desk, self.label, eval_id, children)
        outcome: Combined | Judgment | Failure
        if self.metrics is not None:
            outcome = await self.metrics.judge(subject, teller.ask)
        else:
            outcome = await self._own(teller, subject)
        latency = int((time.perf_counter() - began) * 1000)
        payload: Payload = {
            "eval_id": eval_id,
            "subject_kind": subject.kind,
            "subject_id": subject.id,
            "judge": self.label,
            "judge_latency_ms": latency,
            "judge_cost_usd": teller.bill.usd.decimal,
            "judge_cost_msat": teller.bill.msat.decimal,
        }
        if isinstance(outcome, Failure):
            return "eval.failed", payload | {"failure_mode": outcome.kind, "error_message": outcome.message}
        found = self._combined(outcome) if isinstance(outcome, Combined) else self._judged(outcome)
        payload["judge_pricing_version"] = _pricing_version(teller.bill)
        payload["parent_eval_id"] = parent_eval_id
        return "eval.completed", payload | found

    async def _own(self, teller: Teller, subject: Subject) -> Judgment | Failure:
        slot = self.slot
        assert slot is not None  # a unit has metrics or a slot
        answer = await teller.ask_raw(slot, subject, 0)
        if isinstance(answer, Skip):
            return Failure(
                "throttled_no_heuristic", f"no room for this call ({answer.reason}) and no judge to fall back on"
            )
        assert not isinstance(answer, Score)  # a judge's slot expects a Judgment
        return answer

    def _combined(self, found: Combined) -> Payload:
        return {
            "score": found.score,
            "confidence": found.confidence,
            "judge_kind": "metrics",
            "judge_model": None,
            "rubric_id": RUBRIC_ID,
            "rubric_version": RUBRIC_VERSION,
            "signals": {"metrics": found.metrics, "rollouts": found.rollouts},
            "fingerprint": self.fingerprint,
            "scores": found.scores,
            "tier": found.tier,
            "truth_reason": found.truth_reason,
            "skipped": found.skipped,
            "propensity": found.propensity,
        }

    def _judged(self, found: Judgment) -> Payload:
        rubric = found.rubric
        return {
            "score": found.score,
            "confidence": found.confidence,
            "judge_kind": found.judge_kind,
            "judge_model": found.judge_model,
            "rubric_id": self.planned["rubric_id"] if rubric is None else rubric.id,
            "rubric_version": self.planned["rubric_version"] if rubric is None else rubric.version,
            "signals": found.signals,
            "fingerprint": self._fingerprint(found.judge_model),
            "scores": (),
            "tier": "truth",
            "truth_reason": None,
            "skipped": (),
            "propensity": None,
        }

    def _fingerprint(self, model: str | None) -> str:
        """The unit's digest together with the model that answered."""
        if model is None:
            return self.fingerprint
        if model not in self._by_model:
            self._by_model[model] = sha256(f"{self.fingerprint}\n{model}".encode()).hexdigest()
        return self._by_model[model]


def _pricing_version(bill: Bill) -> str | None:
    if bill.usd.pricing_version is None and bill.msat.pricing_version is None:
        return None
    versions = dict.fromkeys(cost.pricing_version for cost in (bill.usd, bill.msat) if cost.pricing_version)
    return "; ".join(versions) or None
