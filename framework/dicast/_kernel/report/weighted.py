"""Pass rates of weighted subjects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...toolkit.intervals import wilson
from ..values import Event
from ..values.judged import Records
from .intervals import RATE_METHOD_WEIGHTED, Interval
from .spool import Passes, WeightedPasses

Cluster = tuple[float, float]
"""Weights of all subjects and of the passing subjects of a session."""

_ROUNDING = 1e-12


class SubjectWeights:
    """The weights of a run's subjects that differ from 1."""

    def __init__(self) -> None:
        self._weights: dict[tuple[str | None, str | None], float] = {}

    def __bool__(self) -> bool:
        return bool(self._weights)

    def note(self, read: Event) -> None:
        """Note the weight in a ``subject.read`` event."""
        weight: Any = read.payload["weight"]
        self._weights[(read.subject_kind, read.subject_id)] = float(weight)

    def of(self, events: Records) -> Sequence[float] | None:
        """Return the weights of the subjects of *events*; None while every subject counts once."""
        if not self._weights:
            return None
        return [self._weights.get((event.subject_kind, event.subject_id), 1.0) for event in events]


def weighted_rate(passes: Passes, weighted: WeightedPasses) -> dict[str, object]:
    """Return the weighted pass rate among subjects with a verdict, with its 95 % interval; the counts are of subjects."""
    clusters = [(weight - open_, passed) for weight, passed, open_, _ in weighted.clusters()]
    n = passes.count - passes.open
    total = math.fsum(weight for weight, _ in clusters)
    rate = _share(clusters) if n else None
    low, high, method = (weighted_interval(clusters, n) if n else None) or (None, None, None)
    counts = {"passed": passes.passed, "n": n, "open": passes.open, "weight": total}
    return {"value": rate, **counts, "ci_low": low, "ci_high": high, "ci_method": method}


def weighted_bounds(weighted: WeightedPasses) -> tuple[tuple[float, float | None], tuple[float, float | None]]:
    """Return the weighted pass rate with open subjects failed, and with open subjects passed, each with the outer end of its interval."""
    clusters = list(weighted.clusters())
    n = sum(subjects for _, _, _, subjects in clusters)
    failed = [(weight, passed) for weight, passed, _, _ in clusters]
    passing = [(weight, passed + open_) for weight, passed, open_, _ in clusters]
    least, most = weighted_interval(failed, n), weighted_interval(passing, n)
    return (_share(failed), least and least.low), (_share(passing), most and most.high)


def weighted_interval(clusters: Sequence[Cluster], subjects: int) -> Interval | None:
    """Return the 95 % interval of a weighted rate; None below two sessions.

    Wilson's interval with the effective sample size ``p(1-p) / v``, at most the number of *subjects*, where v is the linearized variance of the
    ratio: ``g/(g-1) * sum((passed - p * weight)^2) / (sum of weights)^2`` over the g sessions. If all pass, or none, v is zero, and
    the size is Kish's ``(sum of weights)^2 / sum(weight^2)``.
    """
    decided = [cluster for cluster in clusters if cluster[0] > _ROUNDING]
    if len(decided) < 2:
        return None
    total, rate = math.fsum(weight for weight, _ in decided), _share(decided)
    squares = math.fsum((passed - rate * weight) ** 2 for weight, passed in decided)
    variance = len(decided) / (len(decided) - 1) * squares / total**2
    if min(rate, 1 - rate) < _ROUNDING:
        rate = round(rate)
        effective = total**2 / math.fsum(weight**2 for weight, _ in decided)
    else:
        effective = rate * (1 - rate) / variance if variance > _ROUNDING**2 else math.inf
    return Interval(*wilson(rate, min(effective, subjects)), RATE_METHOD_WEIGHTED)


def _share(clusters: Sequence[Cluster]) -> float:
    total = math.fsum(weight for weight, _ in clusters)
    return min(1.0, max(0.0, math.fsum(passed for _, passed in clusters) / total))
