"""Tests and intervals of changes from pass to fail and from fail to pass."""

from __future__ import annotations

from math import sqrt

from ..numbers.values import json_number


def rate_difference_interval(both: int, gained: int, lost: int, count: int) -> tuple[float, float]:
    """Return the 95 % interval of the difference of two pass rates over the same *count* subjects, where *both* pass both times.

    Newcombe's method 10: it combines the limits of Wilson's intervals of both rates by squares, with the correlation phi, corrected for continuity.
    """
    from scipy import stats  # type: ignore[import-untyped]  # no types

    failed = count - both - gained - lost
    sides = (both + gained, both + lost)
    phi = float(both * failed - gained * lost)
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


def exact_sign_p(rises: int, falls: int) -> float | None:
    """Return the exact p-value of *rises* and *falls* under equal chances; 1 if there are neither."""
    from scipy import stats

    return json_number(stats.binomtest(rises, rises + falls).pvalue) if rises + falls else 1.0
