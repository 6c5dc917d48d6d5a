"""Unit of work whose metrics answer at once and for free: a subject's verdict without coroutines, and equal to :meth:`.unit.Unit.judge`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..events import EVAL_COMPLETED
from ..timing.immediate import run_immediately
from ..values import Score, Subject
from .call import Call
from .paid_calls import DirectAnswers, Payload, RunServices
from .unit import Unit

KNOWN_VERDICTS = 1_000
"""Verdicts with different values that are remembered."""

Answers = tuple[Sequence[Any], bool, bool]
"""Answers of the metrics that were called about a subject, in the order of the calls. Whether the last is no plain score; whether one has a text or signals."""


class QuickUnit:
    """Unit whose metrics all answer at once, for subjects of one kind. *calls* are its calls in their order, the proxies first."""

    def __init__(self, unit: Unit, services: RunServices, kind: str) -> None:
        assert unit.metrics is not None  # a judge alone is no quick unit
        self._unit, self._services, self._kind = unit, services, kind
        self._threshold = unit.metrics.scoring.threshold
        proxies, truths = ([services.calls[slot.path] for slot in slots] for slots in unit.metrics.tiers(kind))
        self.calls: Sequence[Call] = (*proxies, *truths)
        is_gated = bool(proxies) and self._threshold > 0
        self._first: Sequence[Call] = proxies if is_gated else self.calls
        self._gated: Sequence[Call] = truths if is_gated else ()
        self._call_quick = services.caller.call_quick
        self._verdicts: dict[Sequence[object], Payload | None] = {}

    @classmethod
    def of(cls, unit: Unit, services: RunServices, kind: str) -> QuickUnit | None:
        """Return the quick unit of *unit* for subjects of *kind*; None if a call waits, costs, repeats, or has a scale of its own."""
        metrics = unit.metrics
        if metrics is None or metrics.raw_label is not None:
            return None
        scoring, tiers = metrics.scoring, metrics.tiers(kind)
        slots = [slot for slots in tiers for slot in slots]
        calls = [services.calls[slot.path] for slot in slots]
        is_single = scoring.rollouts == 1 and scoring.audit is None
        scaled = any(slot.is_raw or slot.range for slot in slots)
        quick = all(call.quick and call.elsewhere is None and call.expects is Score for call in calls)
        return cls(unit, services, kind) if is_single and quick and not scaled else None

    def ask(self, subject: Subject) -> Answers:
        """Call the metrics about *subject*, until one of them gives an odd answer.

        :raises Interrupted: if the run has to stop.
        """
        answers: list[Any] = []
        is_odd, has_notes = self._call_quick(self._first, subject, answers)
        if self._gated and not is_odd and min([answer.value for answer in answers]) >= self._threshold:
            is_odd, truths_have_notes = self._call_quick(self._gated, subject, answers)
            has_notes = has_notes or truths_have_notes
        return answers, is_odd, has_notes

    def verdict(self, answers: Sequence[Score], subject: Subject) -> Payload | None:
        """Return the payload of ``eval.completed`` without ids, latency, texts and signals; None if the answers make no verdict.

        Subjects with equal values share one payload, which must not be changed.
        """
        key = tuple(
            [
                (answer.value or repr(answer.value), answer.confidence or repr(answer.confidence), answer.basis)
                for answer in answers
            ]
        )  # 0.0 equals -0.0, and their texts differ
        try:
            return self._verdicts[key]
        except KeyError:
            pass
        if len(self._verdicts) >= KNOWN_VERDICTS:
            self._verdicts.clear()
        verdict = self._verdicts[key] = self._judge(answers, subject)
        return verdict

    def handed_over(self, answers: Sequence[Any], seconds: float) -> DirectAnswers:
        """Return the *answers* of the first calls, which took *seconds*, for :meth:`.unit.Unit.judge`."""
        return DirectAnswers(
            {call.slot.path: answer for call, answer in zip(self.calls, answers, strict=False)}, seconds
        )

    def _judge(self, answers: Sequence[Score], subject: Subject) -> Payload | None:
        bare = [Score(answer.value, answer.confidence, basis=answer.basis) for answer in answers]
        judging = self._unit.judge(self._services, subject, "", ready=self.handed_over(bare, 0.0))
        type_, payload = run_immediately(judging)
        return payload if type_ == EVAL_COMPLETED else None
