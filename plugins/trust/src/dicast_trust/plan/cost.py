"""What the rows that are left are going to cost, from those that were paid for."""

from __future__ import annotations

import math

import attrs

from ..statistics.moments import Moments

LEAST, LEAST_STAGED, LEAST_AT_ALL = 10, 20, 5
"""How many rows an interval takes: as a rule, where some rows cost far more than others, and for one that is too narrow."""

EXPLAINED = 0.5
"""The least share of the variance that the size of rows explains, for it to be used."""


@attrs.frozen
class Range:
    """A cost between *low* and *high*, most likely *mid*; *source* says what it is from: ``rows``, or ``size``."""

    low: float
    mid: float
    high: float
    source: str

    def within(self, settled: float, projected: float | None) -> Range:
        """The same with what is *settled* already, and never above what is *projected*."""
        low, mid, high = (settled + value for value in (self.low, self.mid, self.high))
        if projected is not None:
            low, mid, high = (min(value, settled + projected) for value in (low, mid, high))
        return Range(low, mid, high, self.source)


def t_quantile(degrees: float, level: float) -> float:
    """The quantile of Student's t that a two-sided interval of this *level* goes by."""
    from scipy.special import stdtrit  # type: ignore[import-untyped]

    return float(stdtrit(degrees, (1 + level) / 2))


def from_rows(costs: Moments, rest: int, level: float) -> Range:
    """``rest * mean * exp(-q .. q)`` with ``q = t * (s / mean) * sqrt(1/m + 1/rest)``: a prediction interval of the sum, on the scale of logarithms.

    :param costs: of the rows that were paid for, two at least.
    :param rest: how many rows are left.
    """
    if not rest or costs.x <= 0:
        return Range(0.0, 0.0, 0.0, "rows")
    m, mid = costs.count, rest * costs.x
    spread = math.sqrt(costs.xx / (m - 1)) / costs.x
    q = t_quantile(m - 1, level) * spread * math.sqrt(1 / m + 1 / rest)
    return Range(mid * math.exp(-q), mid, mid * math.exp(q), "rows")


def from_size(sizes: Moments, rest: Moments, level: float) -> Range | None:
    """The same by least squares of the cost on the size of rows; None where that explains less than half of it, or there are under 10 rows.

    :param sizes: pairs of size and cost of the rows that were paid for.
    :param rest: the sizes of the rows that are left.
    """
    m, left = sizes.count, rest.count
    if m < LEAST or not left or sizes.xx <= 0 or sizes.yy <= 0 or sizes.xy**2 < EXPLAINED * sizes.xx * sizes.yy:
        return None
    slope = sizes.slope()
    mid = left * (sizes.y - slope * sizes.x + slope * rest.x)
    if mid <= 0:
        return None
    error = math.sqrt(sizes.residual_squares(slope) / (m - 2))
    apart = 1 / m + (rest.x - sizes.x) ** 2 / sizes.xx + 1 / left
    q = t_quantile(m - 2, level) * error * math.sqrt(apart) / (mid / left)
    return Range(mid * math.exp(-q), mid, mid * math.exp(q), "size")
