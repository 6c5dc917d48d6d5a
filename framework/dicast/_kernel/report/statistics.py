"""The figures that need all scores: the configured aggregation, and the confidence interval."""

from __future__ import annotations

import math

from ..aggregation import Aggregation, TrimmedMean
from ..spool import ScoreSpool

Z_95 = 1.959963984540054
"""The 97.5 % quantile of the standard normal distribution."""

CI_METHOD = "normal, 95 %, standard errors clustered by session_id (g/(g-1)), clipped to [0, 1]"


def aggregate_all(scores: ScoreSpool, method: Aggregation) -> float | None:
    """Bring all *scores* to one number, as :func:`~dicast._kernel.aggregation.aggregate` does for a few; None without any."""
    count = scores.count
    if not count:
        return None
    if isinstance(method, TrimmedMean):
        cut = method.cut(count)
        return scores.trimmed(cut) if 2 * cut < count else _median(scores)
    if method == "median":
        return _median(scores)
    if method == "mean":
        return scores.trimmed(0)
    rank = 0 if method == "min" else count - 1
    return scores.ascending(rank, rank + 1)[0]


def _median(scores: ScoreSpool) -> float:
    middle = scores.ascending((scores.count - 1) // 2, scores.count // 2 + 1)
    return math.fsum(middle) / len(middle)


def confidence_interval(scores: ScoreSpool, mean: float) -> tuple[float, float] | None:
    """The 95 % interval of *mean*; None below two clusters.

    The variance of the mean is ``g/(g-1) * sum(residuals of a cluster)^2 / n^2`` over the g clusters (the sandwich estimator
    with the usual small-sample factor; Cameron and Miller 2015, eq. 12, for a mean).
    """
    clusters, squares = scores.cluster_residuals(mean)
    if clusters < 2:
        return None
    error = math.sqrt(clusters / (clusters - 1) * squares) / scores.count
    return max(0.0, mean - Z_95 * error), min(1.0, mean + Z_95 * error)
