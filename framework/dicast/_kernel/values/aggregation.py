"""Bringing several numbers to one."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from operator import mul
from typing import Any, Literal

import attrs

from ..classes import frozen
from .errors import ConfigError, Problem


def _not_a_share(_instance: Any, attribute: attrs.Attribute[Any], value: float) -> None:
    """Refuse a number between 0 and 1: it is a share in the place of a percentage."""
    if 0 < value < 1:
        message = f"{attribute.name} is a percentage from each end, and {value:g} is less than 1 %"
        raise ConfigError(Problem(message, value=value, hint=f"{attribute.name}: {value * 100:g}"))


@frozen
class TrimmedMean:
    """The mean without *trimmed_mean* percent of the values at each end: 0, or from 1 to 50."""

    trimmed_mean: float = attrs.field(validator=[attrs.validators.ge(0), attrs.validators.le(50), _not_a_share])

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
        kept = _kept(values, method)
        return mean(kept) if kept else statistics.median(values)
    return _METHODS[method](values)


def entering(values: Sequence[float], method: Aggregation) -> tuple[float, float]:
    """The lowest and the highest of *values* that :func:`aggregate` makes its number of: of a median the middle ones."""
    if method in ("min", "max"):
        return (_METHODS[method](values),) * 2
    if method == "mean" or (isinstance(method, TrimmedMean) and (kept := _kept(values, method))):
        return (min(values), max(values)) if method == "mean" else (kept[0], kept[-1])
    return statistics.median_low(values), statistics.median_high(values)


def _kept(values: Sequence[float], method: TrimmedMean) -> list[float]:
    """The *values* that are not trimmed, lowest first."""
    cut = method.cut(len(values))
    return sorted(values)[cut : len(values) - cut]


def mean(values: Sequence[float], weights: Sequence[float] | None = None) -> float:
    """The mean of at least one value, by *weights* that are not all 0 where they are given.

    It lies between the least and the greatest value that has a weight, and does not depend on the order: the sums are those of
    :func:`math.fsum`, and what the division rounds beyond the values is held back.
    """
    if values.count(values[0]) == len(values):  # so with most confidences
        return values[0]
    if weights is not None and 0.0 in weights:
        weighted = [pair for pair in zip(values, weights, strict=True) if pair[1]]
        values, weights = [value for value, _ in weighted], [weight for _, weight in weighted]
    least, greatest = min(values), max(values)
    if least == greatest:
        return least
    if weights is None:
        found = math.fsum(values) / len(values)
    else:
        found = math.fsum(map(mul, weights, values)) / math.fsum(weights)
    return least if found < least else min(found, greatest)


_METHODS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "median": statistics.median,
    "mean": mean,
    "min": min,
    "max": max,
}
