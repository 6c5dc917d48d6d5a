"""Outcome of a stage for a subject, and the reader of stage outcomes from verdicts of ``hybrid/cascade``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from dicast import Event
from dicast.signals import signal_numbers


class Outcome(NamedTuple):  # made by the million
    """Result of one stage for one subject: a score with its confidence, or the kind of its *failure*.

    *session* is None for a subject without a session; *cost* is in usd, None if unknown; *signals* are the numbers among the verdict's
    signals. For a failure, *cap* is the cap of the budget that prevented the call.
    """

    kind: str
    id: str
    session: str | None
    run_id: str
    score: float | None
    confidence: float
    failure: str | None
    model: str | None
    cost: Decimal | None
    signals: Mapping[str, float]
    cap: str | None = None


Costs = Mapping[tuple[str, int], Decimal | None]
"""Cost of each stage in usd, by the id of the verdict and the index of the stage; None if unknown."""


def stage_outcomes(event: Event, label: str, count: int, costs: Costs) -> Iterator[tuple[int, Outcome]]:
    """Yield the index and the outcome of each stage that was asked, from an event of the cascade *label* with *count* stages."""
    payload: Mapping[str, Any] = event.payload
    signals: Mapping[str, Any] = payload.get("signals") or {}
    reader = _Reader(event, label, costs)
    if "failure_mode" in payload:  # every stage failed; the causes of the earlier failures are not recorded
        cap = failed_cap(payload)
        yield from ((index, reader.failed_outcome(index, payload["failure_mode"], cap)) for index in range(count))
    elif isinstance(entries := signals.get("stages"), list):
        for index, entry in enumerate(entries):
            yield index, reader.entry_outcome(index, entry)
    elif "heuristic_score" in signals:
        yield 0, reader.first_outcome(signals)
        yield 1, _second(reader, signals)
    else:
        index = reader.only_index(count)
        yield index, reader.deciding_outcome(index)
    yield from reader.audit_outcomes(signals)


def _second(reader: _Reader, signals: Mapping[str, Any]) -> Outcome:
    if signals.get("escalated") is True:
        return reader.deciding_outcome(1)
    cap = signals.get("throttled_reason")
    return reader.failed_outcome(1, str(signals.get("escalation_skipped")), None if cap is None else str(cap))


def failed_cap(payload: Mapping[str, Any]) -> str | None:
    """Return the cap that prevented the call, from the payload of ``eval.failed``; None for another cause."""
    cap = payload.get("throttled_reason", payload.get("skipped"))
    return None if cap is None else str(cap)


class _Reader:
    """Reader of the outcomes in one event."""

    def __init__(self, event: Event, label: str, costs: Costs) -> None:
        self._event, self._label, self._costs = event, label, costs
        self._payload: Mapping[str, Any] = event.payload
        models = self._payload.get("models")
        self._models: Mapping[str, Any] = models if isinstance(models, Mapping) else {}

    def deciding_outcome(self, index: int) -> Outcome:
        """Return the score and confidence of the whole verdict as the outcome of stage *index*."""
        payload = self._payload
        signals = signal_numbers(payload["score"], payload.get("signals") or {})
        return self._outcome(index, payload["score"], payload["confidence"], payload.get("judge_model"), signals)

    def only_index(self, count: int) -> int:
        """Return the index of the only stage that answered: the first, unless a workload selected another."""
        begin = f"{self._label}.stages["
        stages = {int(name[len(begin) :].partition("]")[0]) for name in self._models if name.startswith(begin)}
        return min(stages) if stages and max(stages) < count else 0

    def first_outcome(self, signals: Mapping[str, Any]) -> Outcome:
        """Return the outcome of the first stage, from a verdict of a cascade with two stages."""
        numbers = signal_numbers(0.0, signals.get("first_signals") or {})
        model = signals.get("first_model") or self._model(0)
        return self._outcome(0, signals["heuristic_score"], signals["heuristic_confidence"], model, numbers)

    def entry_outcome(self, index: int, entry: Mapping[str, Any]) -> Outcome:
        """Return the outcome of stage *index* from its *entry* in the signal ``stages``."""
        if "failure" in entry:
            return self.failed_outcome(index, entry["failure"], entry.get("throttled_reason"))
        numbers = signal_numbers(0.0, entry.get("signals") or {})
        return self._outcome(index, entry["score"], entry["confidence"], entry.get("judge_model"), numbers)

    def failed_outcome(self, index: int, kind: str, cap: str | None = None) -> Outcome:
        """Return the outcome of a stage that failed; *kind* is the kind of failure."""
        return self._outcome(index, None, 0.0, None, {}, kind, cap)

    def audit_outcomes(self, signals: Mapping[str, Any]) -> Iterator[tuple[int, Outcome]]:
        """Yield the index and the outcome of the stage that audited a kept verdict."""
        audit = signals.get("audit")
        if isinstance(audit, Mapping) and "score" in audit:
            index = int(audit["stage"])
            yield index, self._outcome(index, audit["score"], audit["confidence"], audit.get("judge_model"), {})

    def _model(self, index: int) -> str | None:
        names = self._models.get(f"{self._label}.stages[{index}]")
        return ", ".join(map(str, names)) if names else None

    def _outcome(
        self,
        index: int,
        score: float | None,
        confidence: float,
        model: str | None,
        signals: Mapping[str, float],
        failure: str | None = None,
        cap: str | None = None,
    ) -> Outcome:
        event, payload = self._event, self._payload
        cost = self._costs.get((str(payload["eval_id"]), index), Decimal(0))
        subject = str(payload["subject_kind"]), str(payload["subject_id"])
        return Outcome(*subject, event.session_id, event.run_id, score, confidence, failure, model, cost, signals, cap)
