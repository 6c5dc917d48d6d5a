"""Means with 95 % intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from math import fsum, sqrt
from typing import Any

from dicast.toolkit.intervals import Z_95

METHOD = "normal, 95 %, standard errors clustered by session_id (g/(g-1))"


def mean_interval(
    values: Sequence[float], clusters: Sequence[Hashable], low: float = 0.0, high: float = 1.0
) -> dict[str, Any]:
    """Return the mean of *values* with its interval, clipped to *low* and *high*; fewer than two clusters have no interval."""
    n = len(values)
    if not n:
        return {"score": None, "ci_low": None, "ci_high": None, "n": 0}
    mean = fsum(values) / n
    sums: dict[Hashable, float] = defaultdict(float)
    for value, cluster in zip(values, clusters, strict=True):
        sums[cluster] += value - mean
    groups = len(sums)
    if groups < 2:
        return {"score": mean, "ci_low": None, "ci_high": None, "n": n}
    error = Z_95 * sqrt(groups / (groups - 1) * fsum(total * total for total in sums.values())) / n
    return {"score": mean, "ci_low": max(low, mean - error), "ci_high": min(high, mean + error), "n": n}
