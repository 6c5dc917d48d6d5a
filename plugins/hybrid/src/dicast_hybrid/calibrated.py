"""A cascade with a calibration: its thresholds, its audits, and the end of the calibration."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import attrs

from dicast import (
    ConfigError,
    Failure,
    Judge,
    Judgment,
    Query,
    RunContext,
    Subject,
    TraceEvent,
    Verdict,
)
from dicast.reading import output_digest
from dicast.signals import TextLengths, TrustModel, feature_values, signal_numbers

from .audit import Audit, Watch
from .document import Calibrated as Document
from .document import answered, check_stages, read_document
from .gold_audits import GoldAudits, Waiting
from .rules import has_thumb, over_feedback, total, wanted_rubric

AUDITED, REVOKED = "calibration.audited", "calibration.revoked"
_ENDS = {
    "revoked": "audits disagreed too often",
    "fingerprint": "the model that answers is not the calibrated model",
}


class Stages(Protocol):
    """A cascade, with its rule for the subjects that the calibration does not decide."""

    @property
    def stages(self) -> tuple[Judge, ...]: ...  # noqa: D102
    @property
    def calibration(self) -> Path | None: ...  # noqa: D102
    @property
    def audit(self) -> Audit | None: ...  # noqa: D102
    @property
    def escalate_over_feedback(self) -> bool: ...  # noqa: D102

    def judge(self, subject: Subject, children: Sequence[Verdict] = ()) -> Awaitable[Judgment | Failure]: ...  # noqa: D102
    def outcome(self, subject: Subject, answers: Sequence[Judgment | Failure]) -> Judgment | Failure: ...  # noqa: D102


@attrs.define
class Step:
    """A stage with its threshold during a run. *end_reason* is the reason why the stage keeps no verdicts: ``revoked`` or ``fingerprint``."""

    label: str
    config: str
    fingerprint: str
    threshold: float | None
    model: TrustModel | None
    watch: Watch | None
    end_reason: str | None = None
    audited: set[str] = attrs.field(factory=set)
    since: str | None = None

    def value(self, subject: Subject, answer: Judgment) -> float | None:
        """Return the value to compare with the threshold, or None if a signal of the model is missing."""
        if self.model is None:
            return answer.confidence
        numbers = signal_numbers(answer.score, answer.signals)
        content = {"input": subject.input, "output": subject.output, "reference": subject.reference}
        lengths = TextLengths.of(content)
        values = feature_values(self.model.features, answer.score, answer.confidence, numbers, lengths)
        return None if values is None else self.model.probability(values)

    def check(self, answer: Judgment) -> None:
        """End the calibration if *answer* is by another model than the calibrated one."""
        if self.end_reason is None and answered(self.config, answer.judge_model) != self.fingerprint:
            self.end("fingerprint")

    def end(self, reason: str) -> None:
        """Escalate every subject from now on, and warn once, because each escalation costs money."""
        if self.end_reason is None:
            self.end_reason = reason
            logging.getLogger(__name__).warning(
                "the calibration of %s has ended (%s): every subject goes to the next stage; run dicast calibrate for a new calibration",
                self.label,
                _ENDS[reason],
            )


@attrs.frozen
class Calibrated:
    """The live object of a cascade with a calibration."""

    cascade: Stages
    document: Document
    steps: tuple[Step, ...]
    run: RunContext = attrs.field(repr=False)
    gold: GoldAudits | None = attrs.field(default=None, repr=False)

    @classmethod
    def of(cls, cascade: Stages, run: RunContext) -> Calibrated:
        """Read the calibration of *cascade* and its audits so far.

        :raises ConfigError: if the calibration is for other stages.
        """
        assert cascade.calibration is not None  # checked by the caller
        document = read_document(cascade.calibration)
        check_stages(document, cascade.stages, cascade.calibration)
        by_people = cascade.audit is not None and cascade.audit.against == "gold"
        risk = 1 - document.target if by_people else None
        steps = tuple(_step(stage, audited=cascade.audit is not None, risk=risk) for stage in document.stages)
        calibrated = cls(cascade, document, steps, run, GoldAudits(run.read, document.digest) if by_people else None)
        calibrated.read_audits()
        return calibrated

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cascade, name)

    def read_audits(self) -> None:
        """Read the audits and the revocation of this calibration from the ledger."""
        for entry in self.run.read(Query(types=(AUDITED, REVOKED))):
            event, payload = entry.event, entry.event.payload
            step = next((step for step in self.steps if step.fingerprint == payload.get("fingerprint")), None)
            if step is None or payload.get("calibration") != self.document.digest:
                continue
            if event.type == REVOKED:
                step.end("revoked")
            elif (
                self._is_mine(payload)
                and step.watch is not None
                and (who := str(payload.get("who"))) not in step.audited
            ):
                step.audited.add(who)
                step.since = step.since or event.time
                step.watch.losses.append(payload.get("loss") is True)
        if self.gold is not None:
            self.gold.read_waiting()

    def _is_mine(self, payload: Mapping[str, object]) -> bool:
        """Return whether an audit is against the same reference (people, or the next stage) as the audits of this run.

        Kept verdicts disagree with the two references at different rates.
        """
        audit = self.cascade.audit
        return audit is not None and payload.get("against", "next") == audit.against

    def _read_labels(self, gold: GoldAudits) -> None:
        """Count the audits that new labels decide."""
        for drawn, label in gold.labeled():
            step = self.steps[drawn.step]
            if drawn.who not in step.audited:
                step.audited.add(drawn.who)
                self._count(step, drawn, loss=self.document.disagree(drawn.score, label))

    async def judge(self, subject: Subject, children: Sequence[Verdict] = ()) -> Judgment | Failure:
        """Return the judgment of the cheapest stage that the calibration keeps, or a failure if every stage fails."""
        if wanted_rubric(subject) in ("llm", "heuristic"):
            return await self.cascade.judge(subject, children)
        if self.gold is not None:
            self._read_labels(self.gold)
        answers: list[Judgment | Failure] = []
        decision: dict[str, object] = {}
        for number, stage in enumerate(self.cascade.stages):
            answer = await stage.judge(subject, children)
            answers.append(answer)
            if isinstance(answer, Failure) or number == len(self.steps):
                continue
            step = self.steps[number]
            step.check(answer)
            value = step.value(subject, answer)
            is_kept = (
                step.end_reason is None and step.threshold is not None and value is not None and value >= step.threshold
            )
            decision = {
                "stage": number,
                "value": value,
                "threshold": step.threshold,
                "kept": is_kept,
                "reasons": [*_reasons(step, value)],
            }
            if is_kept:
                answers[-1] = attrs.evolve(answer, calibrated=True)
                break
            if not self.cascade.escalate_over_feedback and has_thumb(subject):
                answers[-1] = over_feedback(answer)
                break
        outcome = self.cascade.outcome(subject, answers)
        if isinstance(outcome, Failure):
            return outcome
        outcome = attrs.evolve(outcome, calibrated=decision.get("kept") is True)
        signals = {**outcome.signals, "calibration": {"digest": self.document.digest, **decision}}
        outcome = attrs.evolve(outcome, signals=signals)
        if not outcome.calibrated:
            return outcome
        return await self._audit(int(str(decision["stage"])), subject, children, outcome)

    async def _audit(self, number: int, subject: Subject, children: Sequence[Verdict], judgment: Judgment) -> Judgment:
        """Return *judgment* with its audit, if it is selected for one. Only the first audit of a session counts."""
        step, audit = self.steps[number], self.cascade.audit
        output = output_digest(subject.output)
        drawn = Waiting(number, judgment.score, (subject.kind, subject.id), subject.session_id, output)
        if audit is None or step.watch is None or not audit.draws(subject.id) or drawn.who in step.audited:
            return judgment
        if self.gold is not None:
            self.gold.add(drawn)
            waiting = {"against": audit.against, "propensity": audit.rate, "output_digest": output}
            return attrs.evolve(judgment, signals={**judgment.signals, "audit": waiting})
        step.audited.add(drawn.who)
        answer = await self.cascade.stages[number + 1].judge(subject, children)
        result: dict[str, object] = {"stage": number + 1, "propensity": audit.rate}
        if isinstance(answer, Failure):
            step.audited.discard(drawn.who)
            result["failure"] = answer.kind
        else:
            loss = self.document.disagree(judgment.score, answer.score)
            names = ("score", "confidence", "judge_model")
            result |= {**{name: getattr(answer, name) for name in names}, "loss": loss}
            self._count(step, drawn, loss=loss)
        signals = {**judgment.signals, "audit": result}
        return attrs.evolve(judgment, cost=total([judgment, answer]), includes_replies=True, signals=signals)

    def _count(self, step: Step, drawn: Waiting, *, loss: bool) -> None:
        """Record the audit of the verdict *drawn*, and revoke the calibration if the evidence suffices."""
        watch, audit = step.watch, self.cascade.audit
        assert watch is not None  # checked by the callers
        assert audit is not None
        evidence = watch.add(loss=loss)
        about = {"label": step.label, "fingerprint": step.fingerprint, "calibration": self.document.digest}
        payload = {**about, "who": drawn.who, "subject": drawn.subject[1], "loss": loss, "e_value": evidence}
        events = [_event(AUDITED, {**payload, "against": audit.against}, drawn)]
        if evidence >= 1 / self.document.alpha and step.end_reason is None:
            step.end("revoked")
            n = len(watch.losses)
            since = step.since or self.run.run_id
            revocation = {**about, "e_value": evidence, "n": n, "losses": watch.lost, "since": since}
            events.append(_event(REVOKED, revocation, drawn))
        self.run.record(events)


def _event(type_: str, payload: Mapping[str, object], drawn: Waiting) -> TraceEvent:
    return TraceEvent(type_, payload, session_id=drawn.session)


def _step(stage: Mapping[str, Any], *, audited: bool, risk: float | None) -> Step:
    options, risk = stage["model"], stage["audit_risk"] if risk is None else risk
    if audited and stage["threshold"] is not None and risk is None:
        raise ConfigError(
            f"the calibration has no rate at which the next stage disagrees with kept verdicts of {stage['label']} (audit_risk), so it cannot "
            "be audited: calibrate again with --judge-missing, or remove audit"
        )
    watch = Watch(min(max(risk, 1e-9), 1 - 1e-9)) if audited and risk is not None else None
    model = None if options is None else TrustModel(**options)
    return Step(stage["label"], stage["of"]["fingerprint"], stage["fingerprint"], stage["threshold"], model, watch)


def _reasons(step: Step, value: float | None) -> Iterator[str]:
    """Yield the word for the reason why a verdict of *step* is not kept."""
    if step.end_reason is not None:
        yield step.end_reason
    elif step.threshold is None:
        yield "no_threshold"
    elif value is None:
        yield "signal"
    elif value < step.threshold:
        yield "below_threshold"
