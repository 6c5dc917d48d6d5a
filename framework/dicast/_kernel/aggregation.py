"""Bringing several numbers to one."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Literal

import attrs


@attrs.frozen
class TrimmedMean:
    """The mean without *trimmed_mean* percent of the values at each end, in [0, 50]."""

    trimmed_mean: float = attrs.field(validator=[attrs.validators.ge(0), attrs.validators.le(50)])

    def cut(self, count: int) -> int:
        """How many of *count* values are left out at each end: ``floor(count * percent / 100)``, of the percent as it is written."""
        part, whole = Decimal(repr(self.trimmed_mean)).as_integer_ratio()
        return count * part // (whole * 100)


Aggregation = Literal["median", "mean", "min", "max"] | TrimmedMean


def aggregate(values: Sequence[float], method: Aggregation) -> float:
    """Bring at least one value to one number; where a trimmed mean would leave nothing, it is the median."""
    if len(values) == 1:
        return values[0]
    if isinstance(method, TrimmedMean):
        cut = method.cut(len(values))
        kept = sorted(values)[cut : len(values) - cut]
        return mean(kept) if kept else statistics.median(values)
    return _METHODS[method](values)


def mean(values: Sequence[float]) -> float:
    """The mean of at least one value in [0, 1], itself in [0, 1] whatever the rounding."""
    return min(1.0, math.fsum(values) / len(values))


_METHODS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "median": statistics.median,
    "mean": mean,
    "min": min,
    "max": max,
}
