"""Unit of work: the judgment of one subject by one label, and its events."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from ..classes import define, field
from ..events import EVAL_COMPLETED, EVAL_FAILED
from ..plan.sections import Slot
from ..values import Cost, Failure, Judgment, Rubric, Score, Subject
from ..values.rationale import SCOPE
from .call import Children
from .call_scope import throttled
from .paid_calls import NOT_CALLED, UNPAID, DirectAnswers, PaidCalls, Payload, RunServices
from .scoring import RUBRIC_ID, RUBRIC_VERSION, Combined, MetricSet, Skip

if TYPE_CHECKING:
    from .task import Production


@define
class Unit:
    """Work of one label on subjects: *metrics* for the combined verdict, else *slot* for a judge's own.

    *planned* returns, for a subject's kind, the rubric and the kind of judge of the verdict.
    """

    label: str
    fingerprint: str
    planned: Callable[[str], Mapping[str, object]]
    metrics: MetricSet | None = None
    slot: Slot | None = None
    _answered: dict[tuple[str, ...], str] = field(factory=dict)

    @property
    def keeps_texts(self) -> bool:
        """True if its events hold texts of other authors."""
        return getattr(self.metrics if self.slot is None else self.slot.component, "keeps_texts", False)

    async def judge(
        self,
        run: RunServices,
        subject: Subject,
        eval_id: str,
        children: Children = (),
        parent_eval_id: str | None = None,
        production: Production | None = None,
        ready: DirectAnswers = NOT_CALLED,
    ) -> tuple[str, Payload]:
        """Judge *subject*, or the outputs of its *production* by a task; return the type and the payload of the terminal event.

        :param ready: the answers of metrics that were called already; their time is part of the latency.
        """
        began = time.perf_counter() - ready.seconds
        outputs = (subject,) if production is None else production.outputs
        paid = PaidCalls(run, self.label, eval_id, children, ready)
        missing = None
        if production is not None and not (production.excused and self.metrics is not None):
            missing = next((output for output in outputs if isinstance(output, Failure)), None)
        outcome: Combined | Judgment | Failure | Skip
        if missing is not None:
            outcome = missing
        elif self.metrics is not None:
            outcome = await self._metrics(self.metrics, paid, outputs)
        else:
            outcome = await self._judge_alone(paid, outputs[0])
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
            origin = production.origin if production is not None and outcome is missing else None
            return EVAL_FAILED, payload | _failure_payload(outcome, origin, paid.adapted)
        result = self._combined(outcome) if isinstance(outcome, Combined) else self._judged(outcome, subject.kind)
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
        payload |= result
        return EVAL_COMPLETED, payload

    @staticmethod
    async def _metrics(
        metrics: MetricSet, paid: PaidCalls, outputs: Sequence[Subject | Failure]
    ) -> Combined | Failure | Skip:
        """Call the metrics; under ``on_budget: skip_subject`` only if the remaining budget suffices for all of them."""
        skips_metrics = metrics.scoring.on_budget == "skip_metric"
        subject = None if skips_metrics else next((output for output in outputs if isinstance(output, Subject)), None)
        if subject is None:
            return await metrics.judge(outputs, paid.ask)
        proxies, truths = metrics.tiers(subject.kind)
        try:
            return await paid.admit((*proxies, *truths), subject) or await metrics.judge(outputs, paid.ask)
        finally:
            paid.dismiss()

    async def _judge_alone(self, paid: PaidCalls, subject: Subject | Failure) -> Judgment | Failure:
        slot = self.slot
        assert slot is not None  # a unit has metrics or a slot
        assert isinstance(subject, Subject)  # a missing output is the outcome itself
        answer = await paid.ask_raw(slot, subject, 0)
        if isinstance(answer, Skip):
            return throttled(answer)
        assert not isinstance(answer, Score)  # a judge's slot expects a Judgment
        return answer

    def _spared(self, run: RunServices, subject: Subject, combined: Combined) -> list[Payload]:
        """Return how often the gate kept each truth metric from running, with the estimated cost of these calls."""
        metrics = self.metrics
        if (
            metrics is None
            or not metrics.has_truths
            or (combined.truth_reason == "gate" and len(combined.rollouts) == 1)
        ):
            return []
        called = [item["metric"] for item in (*combined.scores, *combined.skipped)]
        spared: list[Payload] = []
        for slot in metrics.tiers(subject.kind)[1]:
            if runs := len(combined.rollouts) - called.count(slot.label):
                cost = run.caller.estimate(run.calls[slot.path], subject)
                saved = Cost.unknown() if isinstance(cost, Failure) else sum([cost] * runs, Cost.zero(cost.unit))
                spared.append({"metric": slot.label, "runs": runs, "amount": saved.decimal, "unit": saved.unit})
        return spared

    def _combined(self, combined: Combined) -> Payload:
        return {
            "score": combined.score,
            **({"raw": combined.raw} if combined.is_raw else {}),
            "confidence": combined.confidence,
            "judge_kind": "metrics",
            "judge_model": None,
            "rubric_id": RUBRIC_ID,
            "rubric_version": RUBRIC_VERSION,
            "signals": {
                "metrics": combined.metrics,
                **({"raw": combined.raws} if combined.raws else {}),
                "rollouts": combined.rollouts,
            },
            "scores": combined.scores,
            "tier": combined.tier,
            "truth_reason": combined.truth_reason,
            "skipped": combined.skipped,
            "propensity": combined.propensity,
            "basis": combined.basis,
            "calibrated": False,
        }

    def _judged(self, judgment: Judgment, kind: str) -> Payload:
        rubric, planned = judgment.rubric, self.planned(kind)
        return {
            "score": judgment.score,
            "confidence": judgment.confidence,
            "judge_kind": judgment.judge_kind,
            "judge_model": judgment.judge_model,
            "rubric_id": planned["rubric_id"] if rubric is None else rubric.id,
            "rubric_version": planned["rubric_version"] if rubric is None else rubric.version,
            "signals": judgment.signals,
            "scores": (),
            "tier": "truth",
            "truth_reason": None,
            "skipped": (),
            "propensity": None,
            "basis": judgment.basis,
            "calibrated": judgment.calibrated,
        }

    def _fingerprint(self, models: Iterable[str], rubric: Rubric | None, adapted: Mapping[str, Iterable[str]]) -> str:
        """Return the digest of the unit, the models that answered, the rubric, and the parameters that endpoints refused."""
        if not models and rubric is None and not adapted:
            return self.fingerprint
        parts = (*sorted(models), *((f"{rubric.id} {rubric.version}",) if rubric is not None else ()))
        parts += tuple(f"{label} adapted: {', '.join(sorted(names))}" for label, names in sorted(adapted.items()))
        fingerprint = self._answered.get(parts)
        if fingerprint is None:
            fingerprint = self._answered[parts] = sha256("\n".join((self.fingerprint, *parts)).encode()).hexdigest()
        return fingerprint


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
