"""The judge ``hybrid/cascade``: asks judges from cheap to expensive until one is confident enough."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

from dicast import (
    ConfigError,
    Failure,
    Judge,
    Judgment,
    Problem,
    Rubric,
    RunContext,
    Subject,
    Verdict,
)
from dicast.signals import signal_numbers

from .audit import Audit
from .rules import SKIPPED, has_thumb, over_feedback, total, wanted_rubric

VERSION = "1.0.0"
"""Version of the rubrics ``turn-hybrid-v1``, ``workload-hybrid-v1`` and so on, which denote the rule in :class:`Cascade`."""

THROTTLED = "throttled_reason"

Threshold = float | tuple[float, ...]

_USUAL = 0.7
"""The default threshold. An identity test distinguishes the default from an equal number in a file."""


def _check_thresholds(cascade: Cascade, attribute: attrs.Attribute[Any], threshold: Threshold) -> None:
    values = threshold if isinstance(threshold, tuple) else (threshold,)
    invalid = [value for value in values if not 0 <= value <= 1]
    if invalid:
        raise ValueError(f"invalid value for {attribute.name}, expected a number from 0 to 1, got {invalid[0]:g}")
    steps = len(cascade.stages) - 1
    if isinstance(threshold, tuple) and len(threshold) != steps:
        raise ValueError(
            f"{attribute.name} has {len(threshold)} numbers and there are {steps} steps between {steps + 1} stages: "
            "give a single number, or a number for each step"
        )


def _check_stages(cascade: Cascade, attribute: attrs.Attribute[Any], stages: Sequence[Judge]) -> None:
    if len(stages) < 2:
        raise ValueError(f"{attribute.name} are at least 2 judges, from cheap to expensive, got {len(stages)}")
    accepted = [kinds for stage in stages if (kinds := _accepts(stage))]
    if accepted and not _common(accepted):
        kinds_of_stages = "; ".join(", ".join(kinds) for kinds in accepted)
        raise ValueError(f"no kind of subject is judged by all {attribute.name}, which judge: {kinds_of_stages}")


def _accepts(judge: Judge) -> tuple[str, ...]:
    return tuple(getattr(judge, "accepts", ()))


def _common(accepted: Sequence[Sequence[str]]) -> tuple[str, ...]:
    return tuple(kind for kind in accepted[0] if all(kind in kinds for kinds in accepted))


@attrs.frozen
class Cascade:
    """Asks judges from cheap to expensive, and stops at the first judge that is confident enough.

    If the first stage is confident enough, its verdict is the result, unchanged. Otherwise the verdict is ``hybrid``, with the score
    and the confidence of the last asked stage. A stage that fails, or that exceeds a cap, is skipped. If no later stage answers,
    the last verdict is the result, and ``signals.escalation_skipped`` has the reason.

    A workload whose ``evaluate`` block names a ``rubric`` follows this block. ``heuristic`` asks only the first stage. ``llm``
    asks only the last stage, and its failure is the workload's; if a cap forbids the call, the first stage judges. ``hybrid`` is the
    rule above.

    A turn with a thumb from its user is not escalated: its first verdict is the result at any confidence, with
    ``signals.escalation_skipped: explicit_feedback``. Implicit feedback does not prevent an escalation.

    :param stages: at least two judges, from cheap to expensive. The cascade judges the kinds of subjects that all stages judge.
    :param escalation_threshold: the minimum confidence, from 0 to 1, of a verdict that is kept; below it the next stage is
        asked. 0 never asks a later stage. A number, or a list with a number for each step between stages.
    :param escalate_over_feedback: ask the next stage about turns with a thumb too.
    :param calibration: the file of ``dicast calibrate`` for these stages, in place of *escalation_threshold*. It has the thresholds
        above which labels have shown how often verdicts are right; kept verdicts have ``calibrated: true``. A stage without
        a threshold always escalates. A file for other stages, or an edited file, is refused.
    :param audit: ask the next stage about a share of the kept verdicts too: ``rate`` from 0 to 1, and ``seed``. ``signals.audit`` has
        the result. If the stages disagree more often than the calibration allows, the calibration is revoked, and every subject
        escalates until a new calibration. With ``against: gold`` no stage is asked: these verdicts wait for a person's label, also
        during ``dicast watch`` (``dicast label FILE --audits``), and more disagreement than 1 - target revokes the calibration. An audit
        needs *calibration*.
    :param ask_all: ask every stage about each subject, for a calibration; the last verdict is the result.
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
            message = "calibration has the thresholds; remove escalation_threshold or calibration"
            raise ConfigError(Problem(message, path="escalation_threshold", value=self.escalation_threshold))
        if self.audit is not None and self.calibration is None:
            message = "audit needs a calibration: name its file in calibration, or remove audit"
            raise ConfigError(Problem(message, path="audit"))

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Any]:
        """Yield the live cascade, which uses the calibration if there is one.

        :raises ConfigError: if the calibration is for other stages; the message has the differences.
        """
        if self.calibration is None or self.ask_all:
            yield self
            return
        from .calibrated import Calibrated  # only a calibrated cascade needs it

        yield Calibrated.of(self, run)

    def reads(self, base: Path) -> dict[str, Path]:
        """Return the calibration file if it exists; :meth:`open` refuses a missing file."""
        exists = self.calibration is not None and self.calibration.is_file()
        return {"calibration": self.calibration} if exists and self.calibration is not None else {}

    @property
    def accepts(self) -> tuple[str, ...]:
        """The subject kinds that every stage judges; empty if all stages judge any kind."""
        accepted = [kinds for stage in self.stages if (kinds := _accepts(stage))]
        return _common(accepted) if accepted else ()

    @property
    def needs_output(self) -> bool:
        """True if every stage needs an output."""
        return all(getattr(stage, "needs_output", True) for stage in self.stages)

    def rubric_for(self, kind: str) -> Rubric:
        """Return the rubric of a verdict by more than one stage."""
        return Rubric(f"{kind}-hybrid-v1", VERSION)

    async def judge(self, subject: Subject, children: Sequence[Verdict] = ()) -> Judgment | Failure:
        """Return the judgment of the cheapest stage that is confident enough, or a failure if every stage fails."""
        rubric_id = wanted_rubric(subject)
        if rubric_id == "llm":
            return await self._by_model(subject, children)
        answers: list[Judgment | Failure] = []
        stages = self.stages[:1] if rubric_id == "heuristic" and not self.ask_all else self.stages
        for stage, threshold in zip(stages, self._thresholds(), strict=False):
            answer = await stage.judge(subject, children)
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
        """Return the judgment of the last stage, or of the first stage if a cap forbids the last."""
        answer = await self.stages[-1].judge(subject, children)
        if isinstance(answer, Judgment) or answer.throttled_reason is None:
            return answer
        fallback = await self.stages[0].judge(subject, children)
        if isinstance(fallback, Failure):
            return attrs.evolve(answer, cost=total([fallback, answer]))
        return attrs.evolve(fallback, signals={**fallback.signals, **_skip_reason(answer)})

    def _thresholds(self) -> Iterator[float]:
        """Yield the minimum confidence of each stage; the last stage has 0."""
        threshold, steps = self.escalation_threshold, len(self.stages) - 1
        yield from threshold if isinstance(threshold, tuple) else (threshold,) * steps
        yield 0.0

    def outcome(self, subject: Subject, answers: Sequence[Judgment | Failure]) -> Judgment | Failure:
        """Return the result of the *answers* of the asked stages."""
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
            return attrs.evolve(decided, cost=cost, includes_replies=True, signals={**signals, **_skip_reason(last)})
        if SKIPPED in decided.signals:  # the fallback for a stage that a cap forbids
            return attrs.evolve(decided, cost=cost, includes_replies=True, signals=signals)
        return attrs.evolve(
            decided,
            judge_kind="hybrid",
            cost=cost,
            includes_replies=True,
            signals={**signals, "escalated": True},
            rubric=self.rubric_for(subject.kind),
        )


def _first(answer: Judgment | Failure) -> dict[str, object]:
    """Return the signals of the first stage, with the names of a heuristic's signals."""
    if isinstance(answer, Failure):
        return {}
    signals: dict[str, object] = {"heuristic_score": answer.score, "heuristic_confidence": answer.confidence}
    if answer.judge_kind == "heuristic":
        signals |= {f"heuristic_{name}": answer.signals.get(name, []) for name in ("flags", "flags_negative")}
    if answer.judge_model is not None:
        signals["first_model"] = answer.judge_model
    if numbers := signal_numbers(answer.score, answer.signals):
        signals["first_signals"] = numbers
    return signals


def _stage(answer: Judgment | Failure) -> dict[str, object]:
    if isinstance(answer, Failure):
        cap = answer.throttled_reason
        return {"failure": answer.kind, **({} if cap is None else {THROTTLED: cap})}
    names = ("judge_kind", "judge_model", "score", "confidence")
    numbers = signal_numbers(answer.score, answer.signals)
    return {name: getattr(answer, name) for name in names} | ({"signals": numbers} if numbers else {})


def _skip_reason(failure: Failure) -> dict[str, object]:
    if failure.throttled_reason is not None:
        return {SKIPPED: "budget_exhausted", THROTTLED: failure.throttled_reason}
    return {SKIPPED: failure.kind}
