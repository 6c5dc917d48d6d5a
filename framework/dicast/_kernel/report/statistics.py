"""Figures that need all scores: the configured aggregation, and the confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...toolkit.intervals import Z_95, wilson
from ..values.aggregation import Aggregation, TrimmedMean
from ..values.passes import TOLERANCE
from .intervals import RATE_METHOD, RATE_METHOD_CLUSTERED, Interval
from .spool import Passes, ScoreFile
from .weighted import weighted_bounds, weighted_rate

Cluster = tuple[int, int, int]
"""Numbers of subjects and passing subjects of a session, and the number of such sessions."""

CI_METHOD = "normal, 95 %, standard errors clustered by session_id (g/(g-1)), clipped to [0, 1]"

RAW_CI_METHOD = CI_METHOD.partition(", clipped")[0]
"""Raw values have no bounds to clip an interval to."""
CI_METHOD_NO_VARIANCE = (
    "rule of three, 95 %: no variance seen, so a share of at most 1-0.05^(1/g) of g sessions or subjects deviates"
)
"""Method if all g clusters have the same mean; a normal interval would be a point."""


def aggregate_all(scores: ScoreFile, method: Aggregation) -> float | None:
    """Aggregate all *scores* to one number, as :func:`~dicast._kernel.values.aggregation.aggregate` does for a few; None without scores.

    A median and a mean are weighted. There is no weighted trimmed mean: it is None.
    """
    count = scores.count
    if not count:
        return None
    if isinstance(method, TrimmedMean) and scores.is_weighted:
        return None  # a share of the subjects is no share of the weight
    if isinstance(method, TrimmedMean):
        cut = method.cut(count)
        return scores.trimmed(cut) if 2 * cut < count else _median(scores)
    if method == "median":
        return scores.weighted_median() if scores.is_weighted else _median(scores)
    if method == "mean":
        return scores.weighted_mean() if scores.is_weighted else scores.trimmed(0)
    rank = 0 if method == "min" else count - 1
    return scores.ascending(rank, rank + 1)[0]


def _median(scores: ScoreFile) -> float:
    middle = scores.ascending((scores.count - 1) // 2, scores.count // 2 + 1)
    return math.fsum(middle) / len(middle)


def confidence_interval(scores: ScoreFile, mean: float, *, bounded: bool = True) -> Interval | None:
    """Return the 95 % interval of *mean*; None below two clusters. Without *bounded* it may leave [0, 1].

    If every cluster's mean equals *mean*, return the interval of :func:`without_variance`, or None on an unbounded scale.

    The variance of the mean is ``g/(g-1) * sum(residuals of a cluster)^2 / n^2`` over the g clusters (the sandwich estimator
    with the usual small-sample factor; Cameron and Miller 2015, eq. 12, for a mean). Spared subjects are left out. With weights the residuals
    are weighted and n is the sum of the weights: the linearized variance of a ratio (Sarndal, Swensson and Wretman 1992, 5.6).
    """
    return _interval(scores.weight, mean, scores.cluster_residuals(mean), bounded=bounded)


def possible_means(scores: ScoreFile, mean: float) -> tuple[tuple[float, float | None], tuple[float, float | None]]:
    """Return the mean if every spared subject had a score of 0, and of 1, each with the outer end of its interval."""
    count = scores.weight + scores.spared_weight
    means = []
    for spared in (0.0, 1.0):
        total_mean = (mean * scores.weight + spared * scores.spared_weight) / count
        interval = _interval(count, total_mean, scores.cluster_residuals(total_mean, spared), bounded=True)
        means.append((total_mean, None if interval is None else interval.high if spared else interval.low))
    return means[0], means[1]


def _interval(count: float, mean: float, residuals: tuple[int, float], *, bounded: bool) -> Interval | None:
    clusters, squares = residuals
    if clusters < 2:
        return None
    half = Z_95 * (math.sqrt(clusters / (clusters - 1) * squares) / count)
    if half < TOLERANCE:
        return without_variance(mean, clusters) if bounded else None
    low, high = mean - half, mean + half
    return Interval(max(0.0, low), min(1.0, high), CI_METHOD) if bounded else Interval(low, high, RAW_CI_METHOD)


def without_variance(mean: float, clusters: int) -> Interval:
    """Return the 95 % interval of a *mean* in [0, 1] that all *clusters* share.

    If a share q of all clusters had another mean, none of g clusters would show it with probability ``(1-q)^g``. So with 95 %
    confidence q is at most ``1-0.05^(1/g)``, about 3/g (the rule of three; Hanley and Lippman-Hand, JAMA 249, 1983, 1743-1745).
    That share may have any mean from 0 to 1.
    """
    share = -math.expm1(math.log(0.05) / clusters)
    return Interval(mean * (1 - share), mean + (1 - mean) * share, CI_METHOD_NO_VARIANCE)


def pass_rate(passes: Passes) -> dict[str, object] | None:
    """Return the pass rate among subjects with a verdict, with its 95 % interval; None without any subject.

    ``value`` is None if all subjects are open; ``open`` is their number. The interval is computed by :func:`rate_interval`.
    """
    n = passes.count - passes.open
    if not passes.count:
        return None
    if passes.weighted is not None:
        return weighted_rate(passes, passes.weighted)
    interval = rate_interval((size - open_, passed, times) for size, passed, open_, times in passes.clusters())
    low, high, method = interval or (None, None, None)
    rate = passes.passed / n if n else None
    counts = {"passed": passes.passed, "n": n, "open": passes.open}
    return {"value": rate, **counts, "ci_low": low, "ci_high": high, "ci_method": method}


def pass_rate_bounds(passes: Passes) -> tuple[tuple[float, float | None], tuple[float, float | None]]:
    """Return the pass rate of all subjects with open subjects failed, and with open subjects passed, each with the outer end of its interval."""
    if passes.weighted is not None:
        return weighted_bounds(passes.weighted)
    clusters, count = list(passes.clusters()), passes.count
    least = rate_interval((size, passed, times) for size, passed, _, times in clusters)
    most = rate_interval((size, passed + open_, times) for size, passed, open_, times in clusters)
    low, high = passes.passed / count, (passes.passed + passes.open) / count
    return (low, least and least.low), (high, most and most.high)


def rate_interval(clusters: Iterable[Cluster]) -> Interval | None:
    """Return the 95 % interval of a rate; None below two sessions.

    The interval is Wilson's (Journal of the American Statistical Association 22, 1927, 209-212). If subjects share a session, its n is
    the effective sample size ``n / deff`` (Franco, Little, Louis and Slud, Journal of Survey Statistics and Methodology
    7, 2019, 334-364), with Kish's design effect: the clustered variance of the rate, by the formula of :func:`confidence_interval`,
    over ``p(1-p)/n``, and at least 1. If all pass, or none, the variance is zero, and subjects of one session count as
    equal: ``deff = sum(size^2) / n``.
    """
    decided = [cluster for cluster in clusters if cluster[0] and cluster[2]]
    n = sum(size * times for size, _, times in decided)
    passed = sum(passed_here * times for _, passed_here, times in decided)
    squares = sum(size * size * times for size, _, times in decided)
    effective = float(n) if squares == n else _effective(n, passed, squares, decided)
    if not effective:
        return None
    return Interval(*wilson(passed / n, effective), RATE_METHOD if squares == n else RATE_METHOD_CLUSTERED)


def _effective(n: int, passed: int, squares: int, clusters: Iterable[Cluster]) -> float | None:
    """Return the effective sample size; None below two clusters."""
    count, residuals = 0, 0
    for size, passed_here, times in clusters:
        count += times
        residuals += times * (n * passed_here - size * passed) ** 2
    if count < 2:
        return None
    if passed in (0, n):
        return n * n / squares
    return n / max(1.0, count / (count - 1) * residuals / (n * passed * (n - passed)))
