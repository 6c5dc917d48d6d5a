"""Scores so large or so small that their squares are no numbers any more.

They are divided by a power of two, which changes none of their digits: p-values, t and effect sizes stay, and lengths are multiplied
by it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import frexp
from typing import TYPE_CHECKING

from .values import plain

if TYPE_CHECKING:
    from .values import Column

TOO_LARGE = "the scores are too large"

_LEAST, _MOST = 1e-60, 1e60
"""What is as large as this can be squared and cubed, and summed up a million times."""
_PART, _DIGITS, _HALF, _UNIT = 1 << 16, 53, 26, 1126
"""A float is a whole number of 53 digits times a power of two, 2 to the power of -1126 at least; so many are added at a time, in two halves."""


def power_of(*columns: Column) -> int:
    """By which power of two to divide *columns*, whose values are finite or NaN; 0 where it need not be."""
    import numpy as np  # 0.1 s, which starting a run does not spend

    ends = [abs(float(end.reduce(column))) for column in columns if len(column) for end in (np.fmin, np.fmax)]
    top = max((end for end in ends if end), default=1.0)
    return 0 if _LEAST <= top <= _MOST else frexp(top)[1]


def divided(column: Column, power: int) -> Column:
    """*column*, divided by two to that *power*."""
    import numpy as np

    return np.ldexp(column, -power) if power else column


def fit(column: Column) -> Column:
    """*column*, divided so that it can be squared."""
    return divided(column, power_of(column))


def multiplied(value: float, power: int) -> float | None:
    """*value* times two to that *power*, as JSON has it; None where that is no finite number."""
    import numpy as np

    return plain(np.ldexp(value, power) if power else value)


def mean_of(column: Column) -> float:
    """The mean of *column*, whose values are finite: exact and rounded once, as a run's document has its means."""
    import numpy as np

    units = 0  # of two to the power of minus _UNIT
    for start in range(0, len(column), _PART):
        parts, powers = np.frexp(column[start : start + _PART])
        whole = np.ldexp(parts, _DIGITS).astype(np.int64)
        for power in np.unique(powers).tolist():
            mine = whole[powers == power]
            high, low = int((mine >> _HALF).sum()), int((mine & (1 << _HALF) - 1).sum())
            units += (high << _HALF) + low << power + _UNIT - _DIGITS
    return units / (len(column) << _UNIT)


def lengths(
    found: Mapping[str, float], power: int, why: str = TOO_LARGE
) -> tuple[dict[str, float | None], dict[str, str]]:
    """The figures *found*, times two to that *power*, and *why* one of them is null."""
    figures = {name: multiplied(value, power) for name, value in found.items()}
    return figures, dict.fromkeys([name for name, figure in figures.items() if figure is None][:1], why)
