"""Scores so large or so small that their squares are no numbers any more.

They are divided by a power of two, which changes none of their digits: p-values, t and effect sizes stay, and lengths are multiplied
by it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import chain
from math import frexp, fsum
from typing import TYPE_CHECKING

from .values import plain

if TYPE_CHECKING:
    from .values import Column

TOO_LARGE = "the scores are too large"

_LEAST, _MOST = 1e-60, 1e60
"""What is as large as this can be squared and cubed, and summed up a million times."""
_PART = 1 << 16


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
    """The mean of *column*, exact and rounded once, as a run's document has its means; the column is one that can be added up."""
    total = fsum(_listed(column))
    rest = fsum(chain((-total,), _listed(column)))  # what rounding the sum has left out
    return float((Fraction(total) + Fraction(rest)) / len(column))


def _listed(column: Column) -> Iterator[float]:
    """The numbers of *column*, without a second copy of all."""
    parts = (column[start : start + _PART] for start in range(0, len(column), _PART))
    return chain.from_iterable(part.tolist() for part in parts)


def lengths(
    found: Mapping[str, float], power: int, why: str = TOO_LARGE
) -> tuple[dict[str, float | None], dict[str, str]]:
    """The figures *found*, times two to that *power*, and *why* one of them is null."""
    figures = {name: multiplied(value, power) for name, value in found.items()}
    return figures, dict.fromkeys([name for name, figure in figures.items() if figure is None][:1], why)
