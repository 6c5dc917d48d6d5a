"""One unit of work: one label's judgment of one subject, and the events it makes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256

from ..classes import define, field
from ..events import EVAL_COMPLETED, EVAL_FAILED
from ..plan.sections import Slot
from ..values import Cost, Failure, Judgment, Rubric, Score, Subject
from ..values.rationale import SCOPE
from .call import Children
from .call_scope import throttled
from .paid_calls import UNPAID, PaidCalls, Payload, RunServices
from .scoring import RUBRIC_ID, RUBRIC_VERSION, Combined, MetricSet, Skip
from .task import Made


@define
class Unit:
    """One label's work on subjects: *metrics* for the combined verdict, else *slot* for a judge's own.

    *planned* says, for a subject's kind, what the verdict is going to be: its rubric, and the kind of judge.
    """

    label: str
    fingerprint: str
    planned: Callable[[str], Mapping[str, object]]
    metrics: MetricSet | None = None
    slot: Slot | None = None
    _answered: dict[tuple[str, ...], str] = field(factory=dict)

    @property
    def keeps_texts(self) -> bool:
        """Whether its events hold what others wrote."""
        return getattr(self.metrics if self.slot is None else self.slot.component, "keeps_texts", False)

    async def judge(
        self,
        run: RunServices,
        subject: Subject,
        eval_id: str,
        children: Children = (),
        parent_eval_id: str | None = None,
        made: Made | None = None,
    ) -> tuple[str, Payload]:
        """Judge *subject*, or what a task has *made* of it; return the type and the payload of the terminal event."""
        began = time.perf_counter()
        outputs = (subject,) if made is None else made.outputs
        paid = PaidCalls(run, self.label, eval_id, children)
        missing = None
        if made is not None and not (made.excused and self.metrics is not None):
            missing = next((output for output in outputs if isinstance(output, Failure)), None)
        outcome: Combined | Judgment | Failure | Skip
        if missing is not None:
            outcome = missing
        elif self.metrics is not None:
            outcome = await self._metrics(self.metrics, paid, outputs)
        else:
            outcome = await self._own(paid, outputs[0])
        latency = int((time.perf_counter() - began) * 1000)
        payload: Payload = {
            "eval_id": eval_id,
            "subject_kind": subject.kind,
            "subject_id": subject.id,
            "judge": self.label,
            "judge_latency_ms": latency,
            "judge_cost_usd": "0" if paid.bill["usd"] is UNPAID["usd"] else paid.bill["usd"].decimal,
            "judge_cost_msat": "0" if paid.bill["msat"] is UNPAID["msat"] else paid.bill["msat"].decimal,
        }
        if isinstance(outcome, Skip):
            payload["skipped"] = outcome.reason
            message = f"not judged: its metrics may cost up to {outcome.cost}, more than is left ({outcome.reason})"
            outcome = Failure("throttled_no_heuristic", message)
        if isinstance(outcome, Failure):
            origin = made.origin if made is not None and outcome is missing else None
            return EVAL_FAILED, payload | _failure_payload(outcome, origin, paid.adapted)
        found = self._combined(outcome) if isinstance(outcome, Combined) else self._judged(outcome, subject.kind)
        if isinstance(outcome, Combined) and (spared := self._spared(run, subject, outcome)):
            payload["spared"] = spared
        if isinstance(outcome, Combined) and outcome.audit is not None:
            payload["audit"] = outcome.audit
        if isinstance(outcome, Combined) and outcome.group:
            payload["stratum"] = outcome.group
        rubric = None if isinstance(outcome, Combined) else outcome.rubric
        payload["fingerprint"] = self._fingerprint(paid.models, rubric, paid.adapted)
        if paid.answered:
            payload["models"] = {label: sorted(models) for label, models in paid.answered.items()}
        if paid.adapted:
            payload["adapted"] = _sorted(paid.adapted)
        payload["judge_pricing_version"] = None if paid.bill == UNPAID else _pricing_version(paid.bill)
        payload["parent_eval_id"] = parent_eval_id
        payload |= found
        return EVAL_COMPLETED, payload

    @staticmethod
    async def _metrics(
        metrics: MetricSet, paid: PaidCalls, outputs: Sequence[Subject | Failure]
    ) -> Combined | Failure | Skip:
        """Ask the metrics; under ``on_budget: skip_subject`` only where there is room for all of them."""
        skips_metrics = metrics.scoring.on_budget == "skip_metric"
        subject = None if skips_metrics else next((each for each in outputs if isinstance(each, Subject)), None)
        if subject is None:
            return await metrics.judge(outputs, paid.ask)
        proxies, truths = metrics.tiers(subject.kind)
        try:
            return await paid.admit((*proxies, *truths), subject) or await metrics.judge(outputs, paid.ask)
        finally:
            paid.dismiss()

    async def _own(self, paid: PaidCalls, subject: Subject | Failure) -> Judgment | Failure:
        slot = self.slot
        assert slot is not None  # a unit has metrics or a slot
        assert isinstance(subject, Subject)  # a missing output is the outcome itself
        answer = await paid.ask_raw(slot, subject, 0)
        if isinstance(answer, Skip):
            return throttled(answer)
        assert not isinstance(answer, Score)  # a judge's slot expects a Judgment
        return answer

    def _spared(self, run: RunServices, subject: Subject, found: Combined) -> list[Payload]:
        """How often the gate kept each truth metric from running, and what that might have cost."""
        metrics = self.metrics
        if metrics is None or not metrics.has_truths or (found.truth_reason == "gate" and len(found.rollouts) == 1):
            return []
        asked = [item["metric"] for item in (*found.scores, *found.skipped)]
        spared: list[Payload] = []
        for slot in metrics.tiers(subject.kind)[1]:
            if runs := len(found.rollouts) - asked.count(slot.label):
                cost = run.caller.estimate(run.calls[slot.path], subject)
                saved = Cost.unknown() if isinstance(cost, Failure) else sum([cost] * runs, Cost.zero(cost.unit))
                spared.append({"metric": slot.label, "runs": runs, "amount": saved.decimal, "unit": saved.unit})
        return spared

    def _combined(self, found: Combined) -> Payload:
        return {
            "score": found.score,
            **({"raw": found.raw} if found.is_raw else {}),
            "confidence": found.confidence,
            "judge_kind": "metrics",
            "judge_model": None,
            "rubric_id": RUBRIC_ID,
            "rubric_version": RUBRIC_VERSION,
            "signals": {
                "metrics": found.metrics,
                **({"raw": found.raws} if found.raws else {}),
                "rollouts": found.rollouts,
            },
            "scores": found.scores,
            "tier": found.tier,
            "truth_reason": found.truth_reason,
            "skipped": found.skipped,
            "propensity": found.propensity,
            "basis": found.basis,
            "calibrated": False,
        }

    def _judged(self, found: Judgment, kind: str) -> Payload:
        rubric, planned = found.rubric, self.planned(kind)
        return {
            "score": found.score,
            "confidence": found.confidence,
            "judge_kind": found.judge_kind,
            "judge_model": found.judge_model,
            "rubric_id": planned["rubric_id"] if rubric is None else rubric.id,
            "rubric_version": planned["rubric_version"] if rubric is None else rubric.version,
            "signals": found.signals,
            "scores": (),
            "tier": "truth",
            "truth_reason": None,
            "skipped": (),
            "propensity": None,
            "basis": found.basis,
            "calibrated": found.calibrated,
        }

    def _fingerprint(self, models: Iterable[str], rubric: Rubric | None, adapted: Mapping[str, Iterable[str]]) -> str:
        """Return the digest of the unit, the models that answered, the rubric, and the parameters that endpoints refused."""
        if not models and rubric is None and not adapted:
            return self.fingerprint
        by = (*sorted(models), *((f"{rubric.id} {rubric.version}",) if rubric is not None else ()))
        by += tuple(f"{label} adapted: {', '.join(sorted(names))}" for label, names in sorted(adapted.items()))
        known = self._answered.get(by)
        if known is None:
            known = self._answered[by] = sha256("\n".join((self.fingerprint, *by)).encode()).hexdigest()
        return known


def _failure_payload(failure: Failure, origin: str | None, adapted: Mapping[str, Iterable[str]]) -> Payload:
    """Return the members of ``eval.failed`` that describe *failure*.

    :param origin: ``task`` if the task made no output.
    :param adapted: the parameters that endpoints refused, by label.
    """
    if origin is not None and failure.adapted:
        adapted = {origin: failure.adapted}
    payload: Payload = {"failure_mode": failure.kind, "error_message": failure.message}
    for name, value in (
        ("throttled_reason", failure.throttled_reason),
        ("reply", failure.reply),
        (SCOPE, None if failure.reply is None else failure.reply_scope),
        ("finish_reason", failure.finish_reason),
        ("origin", origin),
        ("adapted", _sorted(adapted) or None),
    ):
        if value is not None:
            payload[name] = value
    return payload


def _sorted(adapted: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    return {label: sorted(names) for label, names in sorted(adapted.items())}


def _pricing_version(bill: Mapping[str, Cost]) -> str | None:
    versions = dict.fromkeys(cost.pricing_version for cost in bill.values() if cost.pricing_version)
    return "; ".join(versions) or None
