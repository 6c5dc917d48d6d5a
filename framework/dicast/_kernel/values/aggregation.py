"""Aggregation of several numbers into one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from operator import mul
from typing import Any, Literal

import attrs

from ..classes import frozen
from .errors import ConfigError, Problem


def _not_a_share(_instance: Any, attribute: attrs.Attribute[Any], value: float) -> None:
    """Refuse a number between 0 and 1: it is a share in place of a percentage."""
    if 0 < value < 1:
        message = f"{attribute.name} is a percentage from each end, and {value:g} is less than 1 %"
        raise ConfigError(Problem(message, value=value, hint=f"{attribute.name}: {value * 100:g}"))


@frozen
class TrimmedMean:
    """Mean without *trimmed_mean* percent of the values at each end: 0, or from 1 to 50."""

    trimmed_mean: float = attrs.field(validator=[attrs.validators.ge(0), attrs.validators.le(50), _not_a_share])

    def cut(self, count: int) -> int:
        """Return the number of *count* values that are left out at each end: ``floor(count * percent / 100)``, with the decimal digits of the percentage."""
        part, denominator = Decimal(repr(self.trimmed_mean)).as_integer_ratio()
        return count * part // (denominator * 100)


Aggregation = Literal["median", "mean", "min", "max"] | TrimmedMean


def aggregate(values: Sequence[float], method: Aggregation) -> float:
    """Return one number for at least one value; the median if a trimmed mean would leave no value."""
    if len(values) == 1:
        return values[0]
    if isinstance(method, TrimmedMean):
        untrimmed = _untrimmed(values, method)
        return mean(untrimmed) if untrimmed else _median(values)
    return _METHODS[method](values)


def entering(values: Sequence[float], method: Aggregation) -> tuple[float, float]:
    """Return the lowest and the highest of *values* that enter :func:`aggregate`; for a median these are the middle values."""
    if method in ("min", "max"):
        return (_METHODS[method](values),) * 2
    if method == "mean" or (isinstance(method, TrimmedMean) and (untrimmed := _untrimmed(values, method))):
        return (min(values), max(values)) if method == "mean" else (untrimmed[0], untrimmed[-1])
    from statistics import median_high, median_low  # imported late, as in _median

    return median_low(values), median_high(values)


def _untrimmed(values: Sequence[float], method: TrimmedMean) -> list[float]:
    """Return the *values* that are not trimmed, lowest first."""
    cut = method.cut(len(values))
    return sorted(values)[cut : len(values) - cut]


def mean(values: Sequence[float], weights: Sequence[float] | None = None) -> float:
    """Return the mean of at least one value, by *weights* if there are any, which must not all be 0.

    The mean is between the least and the greatest value with a weight, and does not depend on the order: the sums are
    :func:`math.fsum`, and a rounding error of the division is clamped to the range of the values.
    """
    if values.count(values[0]) == len(values):  # most confidences are equal
        return values[0]
    if weights is not None and 0.0 in weights:
        weighted = [pair for pair in zip(values, weights, strict=True) if pair[1]]
        values, weights = [value for value, _ in weighted], [weight for _, weight in weighted]
    least, greatest = min(values), max(values)
    if least == greatest:
        return least
    if weights is None:
        result = math.fsum(values) / len(values)
    else:
        result = math.fsum(map(mul, weights, values)) / math.fsum(weights)
    return least if result < least else min(result, greatest)


def _median(values: Sequence[float]) -> float:
    from statistics import median  # with its imports 2 ms, and few runs have rollouts

    return median(values)


_METHODS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "median": _median,
    "mean": mean,
    "min": min,
    "max": max,
}
