"""How a run's subjects are marked: which labels count, what passes, and what a subject's score is."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, Literal, Self

import attrs

from dicast.reporting import PassRule, metric_values, value_of

from .told import Told

METRICS = "metrics"
"""The label of the verdict that all metrics make together."""

Outcome = Literal["pass", "fail", "none", "open"]
"""``none``: there is no score; ``open``: nothing that counts has judged it."""


@attrs.frozen
class Marking:
    """What ``run.started`` says of a run's labels."""

    metrics: tuple[str, ...]
    judges: tuple[str, ...]
    counted: tuple[str, ...]
    pass_at: Mapping[str, float]
    gated: tuple[str, ...] = ()
    label: str | None = None
    rule: PassRule = attrs.Factory(lambda self: PassRule(self.pass_at), takes_self=True)

    @classmethod
    def of(cls, started: Mapping[str, Any]) -> Self:
        """Read the payload of ``run.started``."""
        names = "metrics", "judges", "counted", "gated"
        metrics, judges, counted, gated = (tuple(started.get(name) or ()) for name in names)
        label = started.get("score_label", counted[0] if len(counted) == 1 else None)
        return cls(metrics, judges, counted, started.get("pass_at") or {}, gated, label, PassRule.of(started))

    def line(self, label: str) -> float | None:
        """Return the least value with which a subject passes *label*; None where it has no line of its own."""
        return self.rule.line(label)

    def deciding(self, told: Told) -> tuple[str, ...]:
        """The labels that decide on *told*: those that count, and where none of these has judged it, all that have."""
        if self.label in told.ended:
            return (str(self.label),)
        mine = tuple(label for label in self.counted if label in told.ended)
        return mine or tuple(told.ended)

    def outcome(self, told: Told) -> Outcome:
        """Whether *told* passes: all labels that decide on it, and all of the gate."""
        labels, values = self.asked(told), self.values(told)
        if any("failure_mode" in told.ended[label] for label in labels):
            return "none"
        passes = [self.passes(told, label) for label in labels]
        combined = told.ended.get(METRICS, {})
        passes += [
            self.rule.metric(label, combined)
            for label in self.gated
            if label in self.metrics and combined and (label in values or label in _left_out(told))
        ]
        flags = _metrics(told).get("score_flags")
        for label, flag in flags.items() if isinstance(flags, Mapping) else ():
            if flag is not None and (not labels or label in self.gated):
                passes.append(bool(flag))
        if False in passes:
            return "fail"
        return "open" if None in passes or not passes else "pass"

    def asked(self, told: Told) -> tuple[str, ...]:
        """The labels whose verdicts decide whether *told* passes: those of its score, and those of the gate."""
        return tuple(dict.fromkeys((*self.deciding(told), *(label for label in self.gated if label in told.ended))))

    def passes(self, told: Told, label: str) -> bool | None:
        """Return whether the verdict of *label* on *told* passes; None where that is open."""
        return self.rule.verdict(label, told.ended[label])

    def score(self, told: Told) -> float | None:
        """The score of *told*; None where it has none, or several."""
        labels = self.deciding(told)
        if len(labels) == 1:
            ended = told.ended[labels[0]]
            return None if "failure_mode" in ended else value_of(ended)
        return None if labels else _only(_metrics(told))

    def basis(self, told: Told) -> str | None:
        """What the score of *told* rests on."""
        labels = self.deciding(told)
        if len(labels) != 1:
            return None
        ended = told.ended[labels[0]]
        return ended.get("basis") or ended.get("tier")

    def values(self, told: Told) -> dict[str, float]:
        """What each metric, judge and criterion gave *told*."""
        found = _numbers(_metrics(told).get("scores"))
        for label, ended in told.ended.items():
            if "failure_mode" not in ended and label != METRICS:
                found[label] = ended["score"]
        combined = told.ended.get(METRICS)
        if combined is not None and "failure_mode" not in combined:
            found |= _numbers(metric_values(combined))
        return found

    def role(self, label: str) -> str:
        """What *label* is."""
        if label == METRICS:
            return "all metrics"
        return "metric" if label in self.metrics else "judge" if label in self.judges else "criterion"


def _left_out(told: Told) -> set[str]:
    """The metrics that were asked about *told*, or due, and gave no score; those that the proxies spared are none of them."""
    combined = told.ended.get(METRICS, {})
    return set() if "failure_mode" in combined else {skip["metric"] for skip in combined.get("skipped", ())}


def _metrics(told: Told) -> Mapping[str, Any]:
    metrics = (told.record or {}).get("metrics")
    return metrics if isinstance(metrics, Mapping) else {}


def _only(metrics: Mapping[str, Any]) -> float | None:
    """The one score that a record's *metrics* have."""
    if is_number(metrics.get("score")):
        return metrics["score"]  # type: ignore[no-any-return]
    scores = _numbers(metrics.get("scores"))
    return next(iter(scores.values())) if len(scores) == 1 else None


def _numbers(found: object) -> dict[str, float]:
    return {str(name): value for name, value in found.items() if is_number(value)} if isinstance(found, Mapping) else {}


def is_number(value: object) -> bool:
    """Whether *value* is a finite number; true and false are none."""
    return type(value) in (int, float) and isfinite(value)  # type: ignore[arg-type]
