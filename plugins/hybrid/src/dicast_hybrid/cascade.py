"""The judge ``hybrid/cascade``: judges from cheap to dear, as far as their confidence makes it necessary."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

from dicast import (
    ConfigError,
    Cost,
    Failure,
    Judge,
    Judgment,
    Problem,
    Rubric,
    RunContext,
    Subject,
    Verdict,
    maybe_await,
)
from dicast.signals import signal_numbers

from .audit import Audit

VERSION = "1.0.0"
"""Of the rubrics ``turn-hybrid-v1``, ``workload-hybrid-v1`` and so on: of the rule in :class:`Cascade`."""

SKIPPED, THROTTLED = "escalation_skipped", "throttled_reason"
FEEDBACK, THUMBS = "explicit_feedback", ("thumbs_up", "thumbs_down")

Threshold = float | tuple[float, ...]

_USUAL = 0.7
"""The very object stands where no threshold was given: one of a file is another object, also where it is as large."""


def _check_thresholds(cascade: Cascade, attribute: attrs.Attribute[Any], given: Threshold) -> None:
    values = given if isinstance(given, tuple) else (given,)
    wrong = [value for value in values if not 0 <= value <= 1]
    if wrong:
        raise ValueError(f"invalid value for {attribute.name}, expected a number from 0 to 1, got {wrong[0]:g}")
    steps = len(cascade.stages) - 1
    if isinstance(given, tuple) and len(given) != steps:
        raise ValueError(
            f"{attribute.name} has {len(given)} numbers and there are {steps} steps between {steps + 1} stages: "
            "give one number for all of them, or one for each"
        )


def _check_stages(cascade: Cascade, attribute: attrs.Attribute[Any], stages: Sequence[Judge]) -> None:
    if len(stages) < 2:
        raise ValueError(f"{attribute.name} are at least 2 judges, from cheap to dear, got {len(stages)}")
    accepted = [kinds for stage in stages if (kinds := _accepts(stage))]
    if accepted and not _common(accepted):
        said = "; ".join(", ".join(kinds) for kinds in accepted)
        raise ValueError(f"no kind of subject is judged by all {attribute.name}, which judge: {said}")


def _accepts(judge: Judge) -> tuple[str, ...]:
    return tuple(getattr(judge, "accepts", ()))


def _common(accepted: Sequence[Sequence[str]]) -> tuple[str, ...]:
    return tuple(kind for kind in accepted[0] if all(kind in others for others in accepted))


@attrs.frozen
class Cascade:
    """Ask judges from cheap to dear, and stop at the first that is confident enough.

    A first stage that is confident enough keeps its verdict, unchanged. Otherwise the verdict is ``hybrid``, with the score
    and the confidence of the last stage asked. A stage that fails, or that a cap leaves no room for, is passed over; when no
    later one has answered, the last verdict there is stands, and ``signals.escalation_skipped`` says why it went no further.

    A workload whose own ``evaluate`` block names a ``rubric`` is judged by that: ``heuristic`` by the first stage alone, ``llm``
    by the last one alone, whose failure is the workload's; the first stands in where a cap leaves no room; ``hybrid`` as above.

    A turn whose user gave a thumb is not escalated: the first verdict there is stands, however unsure, with
    ``signals.escalation_skipped: explicit_feedback``. Implicit feedback escalates like anything else.

    :param stages: at least two judges, from cheap to dear; a subject must be of a kind that all of them judge.
    :param escalation_threshold: the confidence, from 0 to 1, from which on a verdict is kept; below it the next stage is
        asked. 0 never asks a later stage. A number, or a list with one for each step from a stage to the next.
    :param escalate_over_feedback: ask the next stage about turns with a thumb too.
    :param calibration: the file that ``dicast calibrate`` wrote for these stages, in place of *escalation_threshold*: a verdict is kept from the
        threshold on at which labels have shown how often such verdicts are right, and says ``calibrated: true`` then. A stage without
        a threshold there always escalates. Of other stages, and after an edit by hand, the file is refused.
    :param audit: put a share of the kept verdicts to the next stage as well: ``rate`` from 0 to 1, and ``seed``. What it says is in
        ``signals.audit``; where it disagrees too often for what the calibration found, the calibration is revoked, and everything
        escalates until there is a new one. With ``against: gold`` no stage is asked: such verdicts wait for a label, which a person may give
        while ``dicast watch`` goes on (``dicast label FILE --audits``), and more disagreement than 1 - target revokes. Needs *calibration*.
    :param ask_all: ask every stage about each subject, which is what a calibration learns most from; the last verdict stands.
    """

    judge_kind = "hybrid"

    stages: tuple[Judge, ...] = attrs.field(validator=_check_stages)
    escalation_threshold: Threshold = attrs.field(default=_USUAL, validator=_check_thresholds)
    escalate_over_feedback: bool = False
    calibration: Path | None = attrs.field(default=None, metadata={"later": True})
    audit: Audit | None = attrs.field(default=None, metadata={"later": True})
    ask_all: bool = attrs.field(default=False, metadata={"later": True})

    def __attrs_post_init__(self) -> None:
        if self.calibration is not None and self.escalation_threshold is not _USUAL:
            both = "calibration has the thresholds; leave escalation_threshold out, or calibration"
            raise ConfigError(Problem(both, path="escalation_threshold", value=self.escalation_threshold))
        if self.audit is not None and self.calibration is None:
            alone = "audit watches a calibration: name its file in calibration, or leave audit out"
            raise ConfigError(Problem(alone, path="audit"))

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Any]:
        """Give the live cascade; with a calibration one that goes by it.

        :raises ConfigError: when the calibration is none of these stages, saying what differs.
        """
        if self.calibration is None or self.ask_all:
            yield self
            return
        from .calibrated import Calibrated  # only a calibrated cascade needs it

        yield Calibrated.of(self, run)

    def reads(self, base: Path) -> dict[str, Path]:
        """The calibration; where it is not there, opening says so."""
        there = self.calibration is not None and self.calibration.is_file()
        return {"calibration": self.calibration} if there and self.calibration is not None else {}

    @property
    def accepts(self) -> tuple[str, ...]:
        """The subject kinds that every stage judges; empty when all judge any."""
        accepted = [kinds for stage in self.stages if (kinds := _accepts(stage))]
        return _common(accepted) if accepted else ()

    @property
    def needs_output(self) -> bool:
        """Whether no stage can judge without an output."""
        return all(getattr(stage, "needs_output", True) for stage in self.stages)

    def rubric_for(self, kind: str) -> Rubric:
        """The rubric of a verdict that took more than the first stage."""
        return Rubric(f"{kind}-hybrid-v1", VERSION)

    async def judge(self, subject: Subject, children: Sequence[Verdict]) -> Judgment | Failure:
        """Judge by the cheapest stage that is confident enough; a failure only where every stage fails."""
        wanted = wanted_rubric(subject)
        if wanted == "llm":
            return await self._by_model(subject, children)
        answers: list[Judgment | Failure] = []
        stages = self.stages[:1] if wanted == "heuristic" and not self.ask_all else self.stages
        for stage, threshold in zip(stages, self._thresholds(), strict=False):
            answer = await maybe_await(stage.judge(subject, children))
            answers.append(answer)
            if isinstance(answer, Failure) or self.ask_all:
                continue
            if answer.confidence >= threshold:
                break
            if not self.escalate_over_feedback and has_thumb(subject):
                answers[-1] = over_feedback(answer)
                break
        return self.outcome(subject, answers)

    async def _by_model(self, subject: Subject, children: Sequence[Verdict]) -> Judgment | Failure:
        """Judge by the last stage; a cap downgrades to the first one."""
        answer = await maybe_await(self.stages[-1].judge(subject, children))
        if isinstance(answer, Judgment) or answer.throttled_reason is None:
            return answer
        instead = await maybe_await(self.stages[0].judge(subject, children))
        if isinstance(instead, Failure):
            return attrs.evolve(answer, cost=total([instead, answer]))
        return attrs.evolve(instead, signals={**instead.signals, **_why(answer)})

    def _thresholds(self) -> Iterator[float]:
        """The confidence that each stage's verdict needs to be kept; the last one's needs none."""
        given, steps = self.escalation_threshold, len(self.stages) - 1
        yield from given if isinstance(given, tuple) else (given,) * steps
        yield 0.0

    def outcome(self, subject: Subject, answers: Sequence[Judgment | Failure]) -> Judgment | Failure:
        """What the *answers* of the stages that were asked come to."""
        cost, last = total(answers), answers[-1]
        good = [answer for answer in answers if isinstance(answer, Judgment)]
        if isinstance(last, Failure) and not good:
            return attrs.evolve(last, cost=cost)
        decided = good[-1]
        if len(answers) == 1:
            return decided
        signals = {**decided.signals, **_first(answers[0])}
        if len(self.stages) > 2 or self.ask_all or isinstance(answers[0], Failure):
            signals["stages"] = [_stage(answer) for answer in answers]
        if isinstance(last, Failure):
            return attrs.evolve(decided, cost=cost, includes_replies=True, signals={**signals, **_why(last)})
        if SKIPPED in decided.signals:  # a stand-in for a stage that could not be asked
            return attrs.evolve(decided, cost=cost, includes_replies=True, signals=signals)
        return attrs.evolve(
            decided,
            judge_kind="hybrid",
            cost=cost,
            includes_replies=True,
            signals={**signals, "escalated": True},
            rubric=self.rubric_for(subject.kind),
        )


def wanted_rubric(subject: Subject) -> object:
    """The rubric that a workload's own block names; None where there is none, and the cascade goes by confidence."""
    block = subject.context.get("evaluate") if subject.kind == "workload" else None
    return block.get("rubric") if isinstance(block, Mapping) else None


def has_thumb(subject: Subject) -> bool:
    """Whether the user of a turn has said by a thumb how good it was."""
    if subject.kind != "turn":
        return False
    said = (event.payload.get("rating") for event in subject.events if event.type == "feedback.explicit")
    return any(rating in THUMBS for rating in said)


def over_feedback(answer: Judgment) -> Judgment:
    """*answer*, which stands because the user has said by a thumb how good it was."""
    return attrs.evolve(answer, signals={**answer.signals, SKIPPED: FEEDBACK})


def _first(answer: Judgment | Failure) -> dict[str, object]:
    """What the first stage found, under the names that a heuristic's findings have."""
    if isinstance(answer, Failure):
        return {}
    found: dict[str, object] = {"heuristic_score": answer.score, "heuristic_confidence": answer.confidence}
    if answer.judge_kind == "heuristic":
        found |= {f"heuristic_{name}": answer.signals.get(name, []) for name in ("flags", "flags_negative")}
    if answer.judge_model is not None:
        found["first_model"] = answer.judge_model
    if numbers := signal_numbers(answer.score, answer.signals):
        found["first_signals"] = numbers
    return found


def _stage(answer: Judgment | Failure) -> dict[str, object]:
    if isinstance(answer, Failure):
        cap = answer.throttled_reason
        return {"failure": answer.kind, **({} if cap is None else {THROTTLED: cap})}
    names = ("judge_kind", "judge_model", "score", "confidence")
    numbers = signal_numbers(answer.score, answer.signals)
    return {name: getattr(answer, name) for name in names} | ({"signals": numbers} if numbers else {})


def _why(failure: Failure) -> dict[str, object]:
    if failure.throttled_reason is not None:
        return {SKIPPED: "budget_exhausted", THROTTLED: failure.throttled_reason}
    return {SKIPPED: failure.kind}


def total(answers: Sequence[Judgment | Failure]) -> Cost:
    """What all *answers* cost; of costs in two units those in the last one's, because units are never added."""
    costs = [answer.cost for answer in answers if not answer.cost.is_zero]
    return sum((cost for cost in costs if cost.unit == costs[-1].unit), Cost.zero())
