"""A cascade that goes by a calibration: what is kept, what is audited, and when the calibration ends."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from dicast import (
    ConfigError,
    Failure,
    Judgment,
    Query,
    RunContext,
    Subject,
    TraceEvent,
    Verdict,
    maybe_await,
)
from dicast.reading import output_digest
from dicast.signals import TextLengths, TrustModel, feature_values, signal_numbers

from .audit import Watch
from .cascade import Cascade, has_thumb, over_feedback, total, wanted_rubric
from .document import Calibrated as Document
from .document import answered, check_stages, read_document
from .gold_audits import GoldAudits, Waiting

AUDITED, REVOKED = "calibration.audited", "calibration.revoked"
_ENDS = {
    "revoked": "audits disagreed with it too often",
    "fingerprint": "another model answers than the one that was calibrated",
}


@attrs.define
class Step:
    """One stage with its threshold while a run goes on. *ended* says why it keeps nothing any more: ``revoked`` or ``fingerprint``."""

    label: str
    config: str
    fingerprint: str
    threshold: float | None
    model: TrustModel | None
    watch: Watch | None
    ended: str | None = None
    audited: set[str] = attrs.field(factory=set)
    since: str | None = None

    def value(self, subject: Subject, answer: Judgment) -> float | None:
        """What is compared with the threshold; None where a signal of the model is missing."""
        if self.model is None:
            return answer.confidence
        numbers = signal_numbers(answer.score, answer.signals)
        content = {"input": subject.input, "output": subject.output, "reference": subject.reference}
        lengths = TextLengths.of(content)
        values = feature_values(self.model.features, answer.score, answer.confidence, numbers, lengths)
        return None if values is None else self.model.probability(values)

    def check(self, answer: Judgment) -> None:
        """End the calibration where another model has answered than the one it is about."""
        if self.ended is None and answered(self.config, answer.judge_model) != self.fingerprint:
            self.end("fingerprint")

    def end(self, why: str) -> None:
        """Keep nothing any more, and warn of it once: from now on every subject costs what the next stage costs."""
        if self.ended is None:
            self.ended = why
            logging.getLogger(__name__).warning(
                "the calibration of %s has ended (%s): every subject goes to the next stage until there is a new one; dicast calibrate makes it",
                self.label,
                _ENDS[why],
            )


@attrs.frozen
class Calibrated:
    """The live object of a cascade with a calibration."""

    cascade: Cascade
    document: Document
    steps: tuple[Step, ...]
    run: RunContext = attrs.field(repr=False)
    gold: GoldAudits | None = attrs.field(default=None, repr=False)

    @classmethod
    def of(cls, cascade: Cascade, run: RunContext) -> Calibrated:
        """Read the calibration of *cascade*, see that it is about its stages, and what audits have found since.

        :raises ConfigError: when it is not.
        """
        assert cascade.calibration is not None  # who calls has looked
        document = read_document(cascade.calibration)
        check_stages(document, cascade.stages, cascade.calibration)
        by_people = cascade.audit is not None and cascade.audit.against == "gold"
        risk = 1 - document.target if by_people else None
        steps = tuple(_step(one, audited=cascade.audit is not None, risk=risk) for one in document.stages)
        found = cls(cascade, document, steps, run, GoldAudits(run.read, document.digest) if by_people else None)
        found.remember()
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cascade, name)

    def remember(self) -> None:
        """Take up what the ledger has of this calibration: a revocation, and the audits before."""
        for entry in self.run.read(Query(types=(AUDITED, REVOKED))):
            event, payload = entry.event, entry.event.payload
            step = next((one for one in self.steps if one.fingerprint == payload.get("fingerprint")), None)
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
            self.gold.remember()

    def _is_mine(self, payload: Mapping[str, object]) -> bool:
        """Whether an audit had the reference that this run's have: people and the next stage disagree at rates of their own."""
        audit = self.cascade.audit
        return audit is not None and payload.get("against", "next") == audit.against

    def _take_labels(self, gold: GoldAudits) -> None:
        """Count the audits that labels have decided since."""
        for drawn, label in gold.labelled():
            step = self.steps[drawn.step]
            if drawn.who not in step.audited:
                step.audited.add(drawn.who)
                self._count(step, drawn, loss=self.document.disagree(drawn.score, label))

    async def judge(self, subject: Subject, children: Sequence[Verdict]) -> Judgment | Failure:
        """Judge by the cheapest stage whose verdict the calibration keeps; a failure only where every stage fails."""
        if wanted_rubric(subject) in ("llm", "heuristic"):
            return await self.cascade.judge(subject, children)
        if self.gold is not None:
            self._take_labels(self.gold)
        answers: list[Judgment | Failure] = []
        told: dict[str, object] = {}
        for number, stage in enumerate(self.cascade.stages):
            answer = await maybe_await(stage.judge(subject, children))
            answers.append(answer)
            if isinstance(answer, Failure) or number == len(self.steps):
                continue
            step = self.steps[number]
            step.check(answer)
            value = step.value(subject, answer)
            kept = step.ended is None and step.threshold is not None and value is not None and value >= step.threshold
            told = {
                "stage": number,
                "value": value,
                "threshold": step.threshold,
                "kept": kept,
                "reasons": [*_reasons(step, value)],
            }
            if kept:
                answers[-1] = attrs.evolve(answer, calibrated=True)
                break
            if not self.cascade.escalate_over_feedback and has_thumb(subject):
                answers[-1] = over_feedback(answer)
                break
        outcome = self.cascade.outcome(subject, answers)
        if isinstance(outcome, Failure):
            return outcome
        outcome = attrs.evolve(outcome, calibrated=told.get("kept") is True)
        signals = {**outcome.signals, "calibration": {"digest": self.document.digest, **told}}
        outcome = attrs.evolve(outcome, signals=signals)
        return (
            await self._audited(int(str(told["stage"])), subject, children, outcome) if outcome.calibrated else outcome
        )

    async def _audited(self, number: int, subject: Subject, children: Sequence[Verdict], kept: Judgment) -> Judgment:
        """*kept*, put to the next stage as well where it is drawn; one audit a session counts."""
        step, audit = self.steps[number], self.cascade.audit
        output = output_digest(subject.output)
        drawn = Waiting(number, kept.score, (subject.kind, subject.id), subject.session_id, output)
        if audit is None or step.watch is None or not audit.draws(subject.id) or drawn.who in step.audited:
            return kept
        if self.gold is not None:
            self.gold.add(drawn)
            waits = {"against": audit.against, "propensity": audit.rate, "output_digest": output}
            return attrs.evolve(kept, signals={**kept.signals, "audit": waits})
        step.audited.add(drawn.who)
        answer = await maybe_await(self.cascade.stages[number + 1].judge(subject, children))
        found: dict[str, object] = {"stage": number + 1, "propensity": audit.rate}
        if isinstance(answer, Failure):
            step.audited.discard(drawn.who)
            found["failure"] = answer.kind
        else:
            loss = self.document.disagree(kept.score, answer.score)
            names = ("score", "confidence", "judge_model")
            found |= {**{name: getattr(answer, name) for name in names}, "loss": loss}
            self._count(step, drawn, loss=loss)
        return attrs.evolve(
            kept, cost=total([kept, answer]), includes_replies=True, signals={**kept.signals, "audit": found}
        )

    def _count(self, step: Step, drawn: Waiting, *, loss: bool) -> None:
        """Let the evidence grow; revoke the calibration where it is enough."""
        watch, audit = step.watch, self.cascade.audit
        assert watch is not None  # who calls has looked
        assert audit is not None
        evidence = watch.add(loss=loss)
        about = {"label": step.label, "fingerprint": step.fingerprint, "calibration": self.document.digest}
        told = {**about, "who": drawn.who, "subject": drawn.subject[1], "loss": loss, "e_value": evidence}
        events = [_event(AUDITED, {**told, "against": audit.against}, drawn)]
        if evidence >= 1 / self.document.alpha and step.ended is None:
            step.end("revoked")
            n = len(watch.losses)
            found = {**about, "e_value": evidence, "n": n, "losses": watch.lost, "since": step.since or self.run.run_id}
            events.append(_event(REVOKED, found, drawn))
        self.run.record(events)


def _event(type_: str, payload: Mapping[str, object], drawn: Waiting) -> TraceEvent:
    return TraceEvent(type_, payload, session_id=drawn.session)


def _step(found: Mapping[str, Any], *, audited: bool, risk: float | None) -> Step:
    model, risk = found["model"], found["audit_risk"] if risk is None else risk
    if audited and found["threshold"] is not None and risk is None:
        raise ConfigError(
            f"the calibration does not say how often the next stage disagrees with what {found['label']} keeps (audit_risk), so an audit has "
            "nothing to compare with: calibrate again with --judge-missing, or leave audit out"
        )
    watch = Watch(min(max(risk, 1e-9), 1 - 1e-9)) if audited and risk is not None else None
    learnt = None if model is None else TrustModel(**model)
    return Step(found["label"], found["of"]["fingerprint"], found["fingerprint"], found["threshold"], learnt, watch)


def _reasons(step: Step, value: float | None) -> Iterator[str]:
    """Why a verdict of *step* is not kept, in a word."""
    if step.ended is not None:
        yield step.ended
    elif step.threshold is None:
        yield "no_threshold"
    elif value is None:
        yield "signal"
    elif value < step.threshold:
        yield "below_threshold"
