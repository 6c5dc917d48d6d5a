"""What one stage said of one subject, and what a verdict of ``hybrid/cascade`` tells of each of its stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from dicast import Event
from dicast.signals import signal_numbers


class Outcome(NamedTuple):  # made by the million
    """What one stage said of one subject: a score with its confidence, or the kind of its *failure*.

    *session* is None where the subject has none; *cost* is in usd, None when it is not known; *signals* are the numbers among the verdict's
    signals. Of a failure, *cap* is the cap of the budget that left no room.
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


def told(event: Event, label: str, count: int, costs: Costs) -> Iterator[tuple[int, Outcome]]:
    """What the event of a cascade *label* of *count* stages tells of each stage that was asked: its number and its outcome."""
    payload: Mapping[str, Any] = event.payload
    signals: Mapping[str, Any] = payload.get("signals") or {}
    reader = _Reader(event, label, costs)
    if "failure_mode" in payload:  # every stage has failed; what the earlier ones failed of is not said
        cap = failed_cap(payload)
        yield from ((index, reader.failed(index, payload["failure_mode"], cap)) for index in range(count))
    elif isinstance(listed := signals.get("stages"), list):
        for index, one in enumerate(listed):
            yield index, reader.listed(index, one)
    elif "heuristic_score" in signals:
        yield 0, reader.first(signals)
        yield 1, _second(reader, signals)
    else:
        yield reader.only(count), reader.own(reader.only(count))
    yield from reader.audited(signals)


def _second(reader: _Reader, signals: Mapping[str, Any]) -> Outcome:
    if signals.get("escalated") is True:
        return reader.own(1)
    cap = signals.get("throttled_reason")
    return reader.failed(1, str(signals.get("escalation_skipped")), None if cap is None else str(cap))


def failed_cap(payload: Mapping[str, Any]) -> str | None:
    """Return the cap that left no room for the call, from the payload of ``eval.failed``; None for another cause."""
    cap = payload.get("throttled_reason", payload.get("skipped"))
    return None if cap is None else str(cap)


class _Reader:
    """Reads the outcomes of one event."""

    def __init__(self, event: Event, label: str, costs: Costs) -> None:
        self._event, self._label, self._costs = event, label, costs
        self._payload: Mapping[str, Any] = event.payload
        models = self._payload.get("models")
        self._models: Mapping[str, Any] = models if isinstance(models, Mapping) else {}

    def own(self, index: int) -> Outcome:
        """The verdict's own answer, which is that of the stage *index*."""
        payload = self._payload
        signals = signal_numbers(payload["score"], payload.get("signals") or {})
        return self._made(index, payload["score"], payload["confidence"], payload.get("judge_model"), signals)

    def only(self, count: int) -> int:
        """Which stage has answered where one alone has: the first, unless a workload wanted another."""
        begin = f"{self._label}.stages["
        asked = {int(name[len(begin) :].partition("]")[0]) for name in self._models if name.startswith(begin)}
        return min(asked) if asked and max(asked) < count else 0

    def first(self, signals: Mapping[str, Any]) -> Outcome:
        """The first stage's answer, where a second one was asked."""
        also, model = (
            signal_numbers(0.0, signals.get("first_signals") or {}),
            signals.get("first_model") or self._model(0),
        )
        return self._made(0, signals["heuristic_score"], signals["heuristic_confidence"], model, also)

    def listed(self, index: int, one: Mapping[str, Any]) -> Outcome:
        """The answer of a stage as the verdict lists it."""
        if "failure" in one:
            return self.failed(index, one["failure"], one.get("throttled_reason"))
        also = signal_numbers(0.0, one.get("signals") or {})
        return self._made(index, one["score"], one["confidence"], one.get("judge_model"), also)

    def failed(self, index: int, kind: str, cap: str | None = None) -> Outcome:
        """A stage that gave no answer."""
        return self._made(index, None, 0.0, None, {}, kind, cap)

    def audited(self, signals: Mapping[str, Any]) -> Iterator[tuple[int, Outcome]]:
        """The answer of the stage that a kept verdict was also put to."""
        audit = signals.get("audit")
        if isinstance(audit, Mapping) and "score" in audit:
            index = int(audit["stage"])
            yield index, self._made(index, audit["score"], audit["confidence"], audit.get("judge_model"), {})

    def _model(self, index: int) -> str | None:
        found = self._models.get(f"{self._label}.stages[{index}]")
        return ", ".join(map(str, found)) if found else None

    def _made(
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
