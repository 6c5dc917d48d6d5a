"""Equality up to rounding, for the ties of rank statistics and for bounds.

Binary floats cannot represent 0.1: 0.3 - 0.2 and 0.2 - 0.1 differ, and the larger of the two changes if the scores are multiplied by ten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .values import Column

NOISE = 1e-12
"""Largest relative difference of equal values: 12 significant digits count."""


def reaches(value: Any, bound: float) -> Any:
    """Return whether *value*, a number or a column, is *bound* or more up to rounding; false for NaN."""
    return value - bound >= -NOISE * abs(bound)


def merge_ties(values: Column, sizes: Column) -> Column:
    """Return *values* with each tie replaced by its smallest value.

    *sizes* are the magnitudes of the numbers from which the values were computed; they set the tolerance.
    """
    import numpy as np  # 0.1 s, which starting a run does not spend

    order = np.argsort(values, kind="stable")
    ordered, slack = values[order], NOISE * sizes[order]
    begins = np.ones(len(values), bool)
    begins[1:] = np.diff(ordered) > np.maximum(slack[1:], slack[:-1])
    merged = np.empty_like(values)
    merged[order] = ordered[begins][np.cumsum(begins) - 1]
    return merged


def differences(after: Column, before: Column) -> Column:
    """Return *after* minus *before*: 0 for equal values, and equal floats for differences of equal size, regardless of sign."""
    import numpy as np

    signed = raw_differences(after, before)
    return np.copysign(merge_ties(abs(signed), np.maximum(abs(after), abs(before))), signed)


def raw_differences(after: Column, before: Column) -> Column:
    """Return *after* minus *before*, with 0 for values that are equal up to rounding."""
    import numpy as np

    change = after - before
    change[np.isfinite(change) & (abs(change) <= NOISE * np.maximum(abs(after), abs(before)))] = 0.0
    return change


def varies(values: Column) -> bool:
    """Return whether *values* differ by more than rounding."""
    if not len(values):
        return False
    low, high = float(values.min()), float(values.max())
    return high - low > NOISE * max(abs(low), abs(high))
