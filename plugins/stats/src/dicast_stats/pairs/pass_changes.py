"""Tests and intervals of changes from pass to fail and from fail to pass."""

from __future__ import annotations

from math import sqrt

from ..numbers.values import plain


def rate_interval(kept: int, gained: int, lost: int, count: int) -> tuple[float, float]:
    """The 95 % interval of the difference of two pass rates over the same *count* subjects, of which *kept* pass both times.

    Newcombe's method 10: the limits of Wilson's intervals of each rate, put together by squares with the correlation phi, which is
    corrected for continuity.
    """
    from scipy import stats  # type: ignore[import-untyped]  # no types

    failed = count - kept - gained - lost
    sides = (kept + gained, kept + lost)
    phi = float(kept * failed - gained * lost)
    if phi > 0:
        phi = max(phi - count / 2, 0.0)
    margins = sides[0] * (count - sides[0]) * sides[1] * (count - sides[1])
    phi = phi / sqrt(margins) if margins else 0.0
    now, was = (stats.binomtest(side, count).proportion_ci(method="wilson") for side in sides)
    (rate, before), difference = (side / count for side in sides), (gained - lost) / count

    def reach(ours: float, theirs: float) -> float:
        return sqrt(ours**2 - 2 * phi * ours * theirs + theirs**2)

    low = difference - reach(rate - now.low, was.high - before)
    return low, difference + reach(now.high - rate, before - was.low)


def even(rises: int, falls: int) -> float | None:
    """The exact p of *rises* and *falls* where both are equally likely; 1 where there is neither."""
    from scipy import stats

    return plain(stats.binomtest(rises, rises + falls).pvalue) if rises + falls else 1.0
