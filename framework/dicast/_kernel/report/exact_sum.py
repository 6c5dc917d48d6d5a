"""Exact sums of floats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..classes import define


@define
class ExactSum:
    """Exact sum of floats: the same result as :func:`math.fsum`, without storing the values."""

    _units: int = 0

    def add(self, values: Iterable[float]) -> None:
        """Add finite *values*; equal values are added once, multiplied by their number."""
        for value, times in Counter(values).items():
            self.add_times(value, times)

    def add_times(self, value: float, times: int) -> None:
        """Add a finite *value* as often as *times*."""
        numerator, denominator = value.as_integer_ratio()
        self._units += numerator * times << (_FINEST + 1 - denominator.bit_length())

    def subtract(self, other: ExactSum) -> None:
        """Subtract the sum of *other*."""
        self._units -= other._units

    def over(self, count: int) -> float | None:
        """Return the sum divided by *count*, rounded once, so that a mean lies within the range of the values; None for a count of 0."""
        return self._units / (count << _FINEST) if count else None


_FINEST = 1074
"""Negated exponent of the smallest float above 0, a power of 2."""
