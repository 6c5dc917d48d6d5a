"""Mean of paired differences with its interval, where subjects of one session count together."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import floor, log2, sqrt
from typing import TYPE_CHECKING

import attrs

from ..numbers.scale import mean_of, multiply_by_power
from ..numbers.ties import NOISE, varies
from ..text.sentences import ALPHA, POWER

if TYPE_CHECKING:
    from ..numbers.values import Column

MIN_EQUAL = 6
"""Fewest sessions that decide if all their differences are equal: the sign test's p is 2 / 2**6, below 5 %."""

MAX_PAIRS = 10**9
"""Largest number of pairs that is worth a sentence."""


@attrs.frozen
class Estimate:
    """Mean of *n* paired differences over *sessions* sessions; a subject without a session is a session of its own.

    *low* and *high* are the ends of its 95 % interval, *t* and *p_value* the two-sided test of no difference; None if they are not known.
    *error* is the standard error, 0 if all differences are equal. A figure that is too large for a number is None.
    *ends* are the estimates with the lowest and the highest differences that are possible, if the proxies held subjects back: then the mean is
    None, *low* and *high* are the outer ends of both intervals, and the p is the larger one, or 1 if the means have different signs.
    """

    n: int
    sessions: int
    mean: float | None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    error: float | None = None
    t: float | None = None
    ends: tuple[Estimate, Estimate] | None = None

    @property
    def means(self) -> tuple[float, float] | None:
        """The lowest and the highest mean; None if they are not known."""
        least, most = (self, self) if self.ends is None else self.ends
        return None if least.mean is None or most.mean is None else (least.mean, most.mean)


def estimate_between(least: Estimate, most: Estimate) -> Estimate:
    """Return the estimate of a mean between the means of *least* and *most*, which are about the same subjects."""
    p_value = None if least.p_value is None or most.p_value is None else max(least.p_value, most.p_value)
    if p_value is not None and not ((least.mean or 0.0) > 0 or (most.mean or 0.0) < 0):
        p_value = 1.0
    return Estimate(least.n, least.sessions, None, least.low, most.high, p_value, ends=(least, most))


def estimate_mean(change: Column, sessions: Sequence[Hashable], power: int = 0) -> Estimate:
    """Return the mean of the differences *change* with its 95 % interval by Student's t, by session.

    With n differences, G sessions and s_g the sum of a session's deviations from the mean, the variance of the mean is
    G / (G - 1) * sum(s_g ** 2) / n ** 2, with G - 1 degrees of freedom (A. C. Cameron, D. L. Miller, Journal of Human Resources 50, 2015,
    317-372). It is the paired t-test if each session has one subject. If the standard error is 0, the interval has no width, and the exact
    sign test gives the p; fewer than 6 sessions have no interval then.

    :param power: the differences were divided by two to this power.
    """
    import numpy as np  # 0.1 s, which starting a run does not spend
    from scipy.special import stdtr, stdtrit  # type: ignore[import-untyped]  # no types

    count = len(change)
    codes = {session: number for number, session in enumerate(dict.fromkeys(sessions))}
    groups = len(codes)
    if not count:
        return Estimate(0, 0, None)
    mean, largest = mean_of(change), float(abs(change).max())
    sums = np.bincount([codes[session] for session in sessions], change - mean, groups)
    error = sqrt(groups / (groups - 1) * float((sums**2).sum())) / count if groups > 1 else 0.0
    if not varies(change) or error <= NOISE * largest:
        mean = 0.0 if abs(mean) <= NOISE * largest else mean
        return _without_variance(count, groups, multiply_by_power(mean, power))
    reach = float(stdtrit(groups - 1, 1 - ALPHA / 2)) * error
    t = mean / error
    p_value = 2 * float(stdtr(groups - 1, -abs(t)))
    mean_, low, high, error_ = (
        multiply_by_power(figure, power) for figure in (mean, mean - reach, mean + reach, error)
    )
    if low is None or high is None:
        low = high = error_ = None
    return Estimate(count, groups, mean_, low, high, p_value, error_, t)


def _without_variance(count: int, groups: int, mean: float | None) -> Estimate:
    """Return the estimate of differences that have no variance between sessions."""
    if groups < MIN_EQUAL or mean is None:
        return Estimate(count, groups, mean, error=0.0)
    return Estimate(count, groups, mean, mean, mean, 2.0 ** (1 - groups) if mean else 1.0, 0.0)


def exact_zero(count: int, groups: int) -> Estimate:
    """Return the estimate of *count* pairs whose outputs and judges are equal in both runs: there is no difference."""
    return Estimate(count, groups, 0.0, 0.0, 0.0, 1.0, 0.0)


def more_pairs(estimate: Estimate, reach: float, alpha: float = ALPHA, *, far: float | None = None) -> int | None:
    """Return how many more pairs would likely tell the mean from a value at the distance *reach*; None if no number would.

    It is the least number with which the interval leaves out that value in 80 % of cases, if further pairs have the same variance and as many
    subjects in a session. The mean is taken as normal, its standard error as known.

    :param far: the distance of a second value on the other side of the mean, which the same interval must leave out too.
    """
    from scipy.special import ndtr, stdtrit

    if estimate.error is None or not estimate.n:
        return None
    if not estimate.error:
        missing = floor(1 - log2(alpha)) + 1 - estimate.sessions  # for the sign test
        return -(-missing * estimate.n // estimate.sessions) if missing > 0 else None
    error, ratio = estimate.error, estimate.sessions / estimate.n

    def is_enough(pairs: int) -> bool:
        quantile = float(stdtrit(max(pairs * ratio - 1, 1), 1 - alpha / 2))
        error_then = error * sqrt(estimate.n / pairs)
        misses = sum(1 - float(ndtr(side / error_then - quantile)) for side in (reach, far) if side is not None)
        return misses <= 1 - POWER

    low, high = estimate.n, 2 * estimate.n
    while not is_enough(high):
        low, high = high, 2 * high
        if high > MAX_PAIRS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high - estimate.n
