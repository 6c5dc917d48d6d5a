"""Intervals of shares."""

from __future__ import annotations

import math
from typing import NamedTuple

Z_95 = 1.959963984540054
"""The 97.5 % quantile of the standard normal distribution."""

RATE_METHOD = "Wilson, 95 %"
RATE_METHOD_CLUSTERED = "Wilson, 95 %, n divided by the design effect of sessions"
RATE_METHOD_WEIGHTED = "Wilson, 95 %, n divided by the design effect of weights and sessions"


class Interval(NamedTuple):
    """Ends of a 95 % interval, and its method."""

    low: float
    high: float
    method: str


def wilson(rate: float, n: float) -> tuple[float, float]:
    """Return the ends of Wilson's 95 % interval of a *rate* among *n* subjects."""
    square = Z_95 * Z_95
    centre = (rate + square / (2 * n)) / (1 + square / n)
    half = Z_95 / (1 + square / n) * math.sqrt(rate * (1 - rate) / n + square / (4 * n * n))
    return (max(0.0, centre - half) if rate > 0 else 0.0), (min(1.0, centre + half) if rate < 1 else 1.0)
