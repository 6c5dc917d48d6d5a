"""Forecast of the cost of the remaining rows, from the paid rows."""

from __future__ import annotations

import math

import attrs

from ..statistics.moments import Moments

LEAST, LEAST_STAGED, LEAST_AT_ALL = 10, 20, 5
"""Least number of paid rows for a reliable interval; the same if some rows cost far more than others; and for any interval.

An interval from fewer rows than the first two is too narrow.
"""

EXPLAINED = 0.5
"""Share of the variance of costs that the sizes of rows have to explain; below it the forecast ignores sizes."""


@attrs.frozen
class Range:
    """Cost between *low* and *high*, most likely *mid*; *source* is its basis: ``rows``, or ``size``."""

    low: float
    mid: float
    high: float
    source: str

    def within(self, settled: float, projected: float | None) -> Range:
        """Return the range with the *settled* cost added, capped at *settled* and *projected* together."""
        low, mid, high = (settled + value for value in (self.low, self.mid, self.high))
        if projected is not None:
            low, mid, high = (min(value, settled + projected) for value in (low, mid, high))
        return Range(low, mid, high, self.source)


def t_quantile(degrees: float, level: float) -> float:
    """Return the quantile of Student's t for a two-sided interval of this *level*."""
    from scipy.special import stdtrit  # type: ignore[import-untyped]

    return float(stdtrit(degrees, (1 + level) / 2))


def from_rows(costs: Moments, rest: int, level: float) -> Range:
    """Return a prediction interval of the cost of *rest* rows, on the scale of logarithms.

    It is ``rest * mean * exp(-q .. q)`` with ``q = t * (s / mean) * sqrt(1/m + 1/rest)``.

    :param costs: the costs of the paid rows, at least two.
    :param rest: the number of remaining rows.
    """
    if not rest or costs.x <= 0:
        return Range(0.0, 0.0, 0.0, "rows")
    m, mid = costs.count, rest * costs.x
    spread = math.sqrt(costs.xx / (m - 1)) / costs.x
    q = t_quantile(m - 1, level) * spread * math.sqrt(1 / m + 1 / rest)
    return Range(mid * math.exp(-q), mid, mid * math.exp(q), "rows")


def from_size(sizes: Moments, rest: Moments, level: float) -> Range | None:
    """Return the range by least squares of the cost on the size of rows.

    :param sizes: pairs of size and cost of the paid rows.
    :param rest: the sizes of the remaining rows.
    :return: None if the size explains less than half of the variance, or there are under 10 rows.
    """
    m, count = sizes.count, rest.count
    if m < LEAST or not count or sizes.xx <= 0 or sizes.yy <= 0 or sizes.xy**2 < EXPLAINED * sizes.xx * sizes.yy:
        return None
    slope = sizes.slope()
    mid = count * (sizes.y - slope * sizes.x + slope * rest.x)
    if mid <= 0:
        return None
    error = math.sqrt(sizes.residual_squares(slope) / (m - 2))
    leverage = 1 / m + (rest.x - sizes.x) ** 2 / sizes.xx + 1 / count
    q = t_quantile(m - 2, level) * error * math.sqrt(leverage) / (mid / count)
    return Range(mid * math.exp(-q), mid, mid * math.exp(q), "size")
