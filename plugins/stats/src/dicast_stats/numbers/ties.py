"""What is equal but for rounding: rank statistics take it for a tie, and a bound is reached by it.

Binary floats have no .1: of .3 - .2 and .2 - .1 one is larger, and of the same scores times ten the other one may be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .values import Column

NOISE = 1e-12
"""How far apart values may lie, by the larger of them, and still be equal: 12 significant digits count."""


def reaches(value: Any, bound: float) -> Any:
    """Whether *value*, a number or a column of them, is *bound* or more; NaN is not."""
    return value - bound >= -NOISE * abs(bound)


def settled(values: Column, sizes: Column) -> Column:
    """*values* with the least of each tie in place of all that is in it; *sizes* are those of the numbers that they were computed from."""
    import numpy as np  # 0.1 s, which starting a run does not spend

    order = np.argsort(values, kind="stable")
    ordered, slack = values[order], NOISE * sizes[order]
    begins = np.ones(len(values), bool)
    begins[1:] = np.diff(ordered) > np.maximum(slack[1:], slack[:-1])
    found = np.empty_like(values)
    found[order] = ordered[begins][np.cumsum(begins) - 1]
    return found


def differences(now: Column, was: Column) -> Column:
    """*now* less *was*: 0 where both are equal, and one number where two differences are, whichever their signs."""
    import numpy as np

    found = raw_differences(now, was)
    return np.copysign(settled(abs(found), np.maximum(abs(now), abs(was))), found)


def raw_differences(now: Column, was: Column) -> Column:
    """*now* less *was*, 0 where both are equal."""
    import numpy as np

    found = now - was
    found[np.isfinite(found) & (abs(found) <= NOISE * np.maximum(abs(now), abs(was)))] = 0.0
    return found


def varies(values: Column) -> bool:
    """Whether *values* differ by more than rounding does."""
    if not len(values):
        return False
    low, high = float(values.min()), float(values.max())
    return high - low > NOISE * max(abs(low), abs(high))
