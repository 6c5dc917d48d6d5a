"""Intervals of shares."""

from __future__ import annotations

from typing import NamedTuple

RATE_METHOD = "Wilson, 95 %"
RATE_METHOD_CLUSTERED = "Wilson, 95 %, n divided by the design effect of sessions"
RATE_METHOD_WEIGHTED = "Wilson, 95 %, n divided by the design effect of weights and sessions"


class Interval(NamedTuple):
    """Ends of a 95 % interval, and its method."""

    low: float
    high: float
    method: str
