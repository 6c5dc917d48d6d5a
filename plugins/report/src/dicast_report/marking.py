"""Marking of a run's subjects: the labels that count, whether a subject passes, and its score."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, Literal, Self

import attrs

from dicast import ALL_METRICS
from dicast.reporting import PassRule, metric_values, value_of

from .subjects import RECORD, SubjectResults

Outcome = Literal["pass", "fail", "none", "open"]
"""``none``: without a score; ``open``: without a verdict of a counted label."""


_OUTCOMES: Mapping[bool | None, Outcome] = {True: "pass", False: "fail", None: "open"}


@attrs.frozen
class Marking:
    """A run's labels, from ``run.started``."""

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
        """Return the least passing value of *label*; None if the label has no line."""
        return self.rule.line(label)

    def scoring_labels(self, subject: SubjectResults) -> tuple[str, ...]:
        """Return the labels that decide on *subject*: the counted labels that judged it, else all labels that judged it."""
        if self.label in subject.results:
            return (str(self.label),)
        mine = tuple(label for label in self.counted if label in subject.results)
        return mine or tuple(subject.results)

    def outcome(self, subject: SubjectResults) -> Outcome:
        """Return whether *subject* passes: under all labels that decide on it, and under all labels of the gate."""
        labels = self.deciding_labels(subject)
        if any("failure_mode" in subject.results[label] for label in labels):
            return "none"
        passes = [self.passes(subject, label) for label in labels]
        combined = subject.results.get(ALL_METRICS, {})
        if combined and (metrics := [label for label in self.gated if label in self.metrics]):
            names = {*self.values(subject), *_left_out(subject)}
            passes += [self.rule.metric(label, combined) for label in metrics if label in names]
        flags = _metrics(subject).get("score_flags")
        for label, flag in flags.items() if isinstance(flags, Mapping) else ():
            if flag is not None and (not labels or label in self.gated):
                passes.append(bool(flag))
        if False in passes:
            return "fail"
        return "open" if None in passes or not passes else "pass"

    def label_outcomes(self, subject: SubjectResults, values: Mapping[str, float]) -> dict[str, Outcome]:
        """Return whether *subject* passes under each label by itself; *values* are those of :meth:`all_values`. A label that has no result is missing."""
        flags = _metrics(subject).get("score_flags")
        flags = flags if isinstance(flags, Mapping) else {}
        outcomes: dict[str, Outcome] = {}
        for label, value in values.items():
            flag = flags.get(label)
            outcomes[label] = _OUTCOMES[self.rule.reaches(label, value) if flag is None else bool(flag)]
        for label, result in subject.results.items():
            if label not in (ALL_METRICS, RECORD):
                outcomes[label] = "none" if "failure_mode" in result else _OUTCOMES[self.passes(subject, label)]
        combined = subject.results.get(ALL_METRICS)
        if combined is None:
            return outcomes
        has_failed = "failure_mode" in combined
        if len(self.metrics) > 1 and self.judges:
            outcomes[ALL_METRICS] = "none" if has_failed else _OUTCOMES[self.passes(subject, ALL_METRICS)]
        for label in self.metrics:
            if has_failed or label in values or label in _left_out(subject):
                outcomes[label] = "none" if has_failed else _OUTCOMES[self.rule.metric(label, combined)]
        return outcomes

    def deciding_labels(self, subject: SubjectResults) -> tuple[str, ...]:
        """Return the labels whose verdicts decide whether *subject* passes: the labels of its score and of the gate."""
        return tuple(
            dict.fromkeys((*self.scoring_labels(subject), *(label for label in self.gated if label in subject.results)))
        )

    def passes(self, subject: SubjectResults, label: str) -> bool | None:
        """Return whether the verdict of *label* on *subject* passes; None if that is undecided."""
        return self.rule.verdict(label, subject.results[label])

    def is_at_odds(self, subject: SubjectResults) -> bool:
        """Return whether one label passes *subject* and another does not; all metrics together are one label."""
        return {True, False} <= {self.passes(subject, label) for label in subject.results}

    def low_recorded(self, subject: SubjectResults) -> dict[str, float]:
        """Return the scores of *subject* that another tool recorded and that are below their lines, by label."""
        return {
            label: result["score"]
            for label, result in subject.results.items()
            if result.get("judge_kind") == "recorded" and self.passes(subject, label) is False
        }

    def score(self, subject: SubjectResults) -> float | None:
        """Return the score of *subject*; None if it has none, or several."""
        labels = self.scoring_labels(subject)
        if len(labels) == 1:
            result = subject.results[labels[0]]
            return None if "failure_mode" in result else value_of(result)
        return None if labels else _only(_metrics(subject))

    def basis(self, subject: SubjectResults) -> str | None:
        """Return the basis of the score of *subject*."""
        labels = self.scoring_labels(subject)
        if len(labels) != 1:
            return None
        return _basis(subject.results[labels[0]])

    @staticmethod
    def label_bases(subject: SubjectResults) -> dict[str, str | None]:
        """Return the basis of the score of each metric and judge. Failures and values without a basis, such as criteria, are missing or None."""
        combined = subject.results.get(ALL_METRICS, {})
        bases = {str(score["metric"]): _basis(score) for score in combined.get("scores", ())}
        return bases | {label: _basis(result) for label, result in subject.results.items()}

    def values(self, subject: SubjectResults) -> dict[str, float]:
        """Return the value that each metric, judge and criterion gave *subject*."""
        values = _numbers(_metrics(subject).get("scores"))
        for label, result in subject.results.items():
            if "failure_mode" not in result and label != ALL_METRICS:
                values[label] = result["score"]
        combined = subject.results.get(ALL_METRICS)
        if combined is not None and "failure_mode" not in combined:
            values |= _numbers(metric_values(combined))
        return values

    def all_values(self, subject: SubjectResults) -> dict[str, float]:
        """Return the values of :meth:`values`, and next to other labels also of several metrics together."""
        values = self.values(subject)
        combined = subject.results.get(ALL_METRICS)
        if combined is None or "failure_mode" in combined or len(self.metrics) < 2 or not self.judges:
            return values
        whole = value_of(combined)
        return values if whole is None else {ALL_METRICS: whole, **values}

    def role(self, label: str) -> str:
        """Return the role of *label*."""
        if label == ALL_METRICS:
            return "all metrics"
        return "metric" if label in self.metrics else "judge" if label in self.judges else "criterion"


def _basis(result: Mapping[str, Any]) -> str | None:
    return result.get("basis") or result.get("tier")


def _left_out(subject: SubjectResults) -> set[str]:
    """Return the metrics that should have scored *subject* and gave no score. Metrics spared by the gate of the proxies are not included."""
    combined = subject.results.get(ALL_METRICS, {})
    return set() if "failure_mode" in combined else {skip["metric"] for skip in combined.get("skipped", ())}


def _metrics(subject: SubjectResults) -> Mapping[str, Any]:
    metrics = (subject.record or {}).get("metrics")
    return metrics if isinstance(metrics, Mapping) else {}


def _only(metrics: Mapping[str, Any]) -> float | None:
    """Return the only score in a record's *metrics*; None if there are several or none."""
    if is_number(metrics.get("score")):
        return metrics["score"]  # type: ignore[no-any-return]
    scores = _numbers(metrics.get("scores"))
    return next(iter(scores.values())) if len(scores) == 1 else None


def _numbers(values: object) -> dict[str, float]:
    return (
        {str(name): value for name, value in values.items() if is_number(value)} if isinstance(values, Mapping) else {}
    )


def is_number(value: object) -> bool:
    """Return whether *value* is a finite number; true and false are not."""
    return type(value) in (int, float) and isfinite(value)  # type: ignore[arg-type]
