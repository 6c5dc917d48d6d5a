"""Intervals of rates."""

from __future__ import annotations

from math import sqrt

__all__ = ["Z_95", "wilson"]

Z_95 = 1.959963984540054
"""The quantile of the normal distribution for a two-sided interval of 95 %."""


def wilson(rate: float, n: float, z: float = Z_95) -> tuple[float, float]:
    """Return the ends of Wilson's interval of a *rate* among *n* subjects, at 95 % by default.

    E. B. Wilson, Journal of the American Statistical Association 22 (1927), 209-212.

    :param rate: from 0 to 1.
    :param n: more than 0; an effective number, with a fraction, is allowed.
    :param z: the quantile of the normal distribution for another level.
    """
    square = z * z
    center = (rate + square / (2 * n)) / (1 + square / n)
    half = z / (1 + square / n) * sqrt(rate * (1 - rate) / n + square / (4 * n * n))
    return (max(0.0, center - half) if rate > 0 else 0.0), (min(1.0, center + half) if rate < 1 else 1.0)
