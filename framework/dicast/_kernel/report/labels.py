"""Figures of each label of a run, and of the label of the run's score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from ..classes import frozen
from ..values.aggregation import Aggregation
from .fold import Report
from .spool import Passes
from .statistics import aggregate_all, confidence_interval, pass_rate

Document = dict[str, Any]


@frozen
class Ending:
    """End of a run: the reason why it *stopped*, None at the end of its source, and by label the *intervals* that are valid at any time."""

    stopped: Mapping[str, object] | None
    intervals: Mapping[str, Mapping[str, Any]]

    def decided(self, label: str) -> bool:
        """Return True if an early stop ended the run by the scores of *label*."""
        return self.stopped is not None and self.stopped.get("on") == label

    def interval(self, report: Report, label: str) -> Document:
        """Return the ends of the 95 % interval of the mean of *label* with their method.

        After a stop that the scores decided, it is the interval of the stop; an interval for a fixed number of scores would be wrong.
        """
        stop_interval = self.intervals.get(label)
        if self.decided(label) and stop_interval is not None:
            return {
                "ci_low": stop_interval["low"],
                "ci_high": stop_interval["high"],
                "ci_method": stop_interval["method"],
            }
        scores, mean = report.watched[label].scores, report.mean(label)
        is_bounded = label not in report.criteria and label not in report.raw
        computed = None if mean is None else confidence_interval(scores, mean, bounded=is_bounded)
        if computed is None:
            return {"ci_low": None, "ci_high": None, "ci_method": None}
        return {"ci_low": computed.low, "ci_high": computed.high, "ci_method": computed.method}

    def passes(self, report: Report, label: str, passes: Passes) -> Document:
        """Return the number of subjects that pass *label* and their total, as a rate with its interval.

        There is no interval if the scores decided a stop.
        """
        watched = report.watched.get(label)
        states = report.rule.states(label) if watched is None else watched.flagged
        figures = pass_rate(passes) if states else None
        rate = None if figures is None else figures.pop("value")
        if figures is not None and self.decided(label):
            figures = {**figures, "ci_low": None, "ci_high": None, "ci_method": None}
        return {"pass_rate": rate, "passes": figures}


def raw_scale(report: Report, label: str) -> Document:
    """Return ``scale: raw`` for a raw *label*, with the reason if it has no pass rate; empty for any other label."""
    if label not in report.raw:
        return {}
    return {"scale": "raw"} | ({} if report.rule.states(label) else {"reasons": ["raw_scale"]})


def label_figures(report: Report, label: str, ending: Ending) -> Document:
    """Return the figures of *label*, a label of the file: its mean, its pass rate, and its number of scored subjects."""
    tally, watched = report.tally(label), report.watched[label]
    if label in report.criteria:
        scored, total = watched.scores.count, watched.subjects
        counts = {"scored": scored, "failed": total - scored, "total": total}
    else:
        counts = {"scored": tally.scored, "failed": tally.failed, "total": tally.total}
    return {
        "mean": report.mean(label),
        **tally.weights(),
        **raw_scale(report, label),
        **ending.passes(report, label, watched.passes),
        **ending.interval(report, label),
        "basis": tally.basis(),
        **counts,
    }


def score_figures(report: Report, aggregation: Aggregation, ending: Ending) -> Document | None:
    """Return the figures of the run's score; None if the file has several labels and selects none."""
    label = report.score_label
    if label is None:
        return None
    watched, tally = report.watched[label], report.tally(label)
    return {
        "label": label,
        "mean": report.mean(label),
        **tally.weights(),
        **raw_scale(report, label),
        **ending.passes(report, label, watched.passes),
        "aggregation": aggregation if isinstance(aggregation, str) else attrs.asdict(aggregation),
        "aggregate": aggregate_all(watched.scores, aggregation),
        **ending.interval(report, label),
        "by_tier": dict(report.tiers),
        "by_basis": tally.by_basis(),
        **({"calibrated": tally.calibrated} if tally.calibrated else {}),
    }
