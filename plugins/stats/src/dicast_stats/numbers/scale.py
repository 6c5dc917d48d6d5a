"""Arithmetic on scores so large or so small that their squares overflow or underflow.

Scores are divided by a power of two, which changes none of their digits. P-values, t and effect sizes are not affected; figures in
the unit of the scores are multiplied by the power again.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import frexp
from typing import TYPE_CHECKING

from .values import json_number

if TYPE_CHECKING:
    from .values import Column

TOO_LARGE = "the scores are too large"

_LEAST, _MOST = 1e-60, 1e60
"""Range of values that can be squared and cubed, and summed a million times."""
_PART, _DIGITS, _HALF, _UNIT = 1 << 16, 53, 26, 1126
"""A float is an integer of 53 bits times a power of two, at least 2**-1126. The sum adds _PART floats at a time, in two halves of the bits."""


def common_power(*columns: Column) -> int:
    """Return the exponent of the power of two by which to divide *columns*; 0 if no division is needed.

    The values are finite or NaN.
    """
    import numpy as np  # 0.1 s, which starting a run does not spend

    ends = [abs(float(end.reduce(column))) for column in columns if len(column) for end in (np.fmin, np.fmax)]
    top = max((end for end in ends if end), default=1.0)
    return 0 if _LEAST <= top <= _MOST else frexp(top)[1]


def divide_by_power(column: Column, power: int) -> Column:
    """Return *column* divided by two to the power *power*."""
    import numpy as np

    return np.ldexp(column, -power) if power else column


def rescale(column: Column) -> Column:
    """Return *column* divided by a power of two, so that its squares are finite and not 0."""
    return divide_by_power(column, common_power(column))


def multiply_by_power(value: float, power: int) -> float | None:
    """Return *value* times two to the power *power* as a JSON number; None if the product is not finite."""
    import numpy as np

    return json_number(np.ldexp(value, power) if power else value)


def mean_of(column: Column) -> float:
    """Return the mean of *column*, computed exactly and rounded once, as in the document of a run.

    The values are finite.
    """
    import numpy as np

    units = 0  # in units of 2**-_UNIT
    for start in range(0, len(column), _PART):
        parts, powers = np.frexp(column[start : start + _PART])
        integers = np.ldexp(parts, _DIGITS).astype(np.int64)
        for power in np.unique(powers).tolist():
            selected = integers[powers == power]
            high, low = int((selected >> _HALF).sum()), int((selected & (1 << _HALF) - 1).sum())
            units += (high << _HALF) + low << power + _UNIT - _DIGITS
    return units / (len(column) << _UNIT)


def scale_back(
    scaled: Mapping[str, float], power: int, reason: str = TOO_LARGE
) -> tuple[dict[str, float | None], dict[str, str]]:
    """Return the figures in *scaled* times two to the power *power*, and the reasons for null figures.

    The reason is *reason*, for the first figure that is not finite.
    """
    figures = {name: multiply_by_power(value, power) for name, value in scaled.items()}
    return figures, dict.fromkeys([name for name, figure in figures.items() if figure is None][:1], reason)
