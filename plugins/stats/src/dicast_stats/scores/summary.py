"""Figures of a column of scores."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

from ..numbers.scale import common_power, divide_by_power, mean_of, multiply_by_power
from ..numbers.values import ignore_float_warnings

if TYPE_CHECKING:
    from ..numbers.values import Column


def summarize_scores(scores: Column, missing: int, flagged: int, passes: int, ddof: int = 0) -> dict[str, Any]:
    """Return the figures of *scores*, with the counts of *missing* scores, of flags and of passes."""
    count = len(scores)
    figures: dict[str, Any] = {"count": count, "missing": missing}
    if count:
        figures |= describe_values(scores, ddof)
    if count + missing:
        figures |= {"flagged": flagged, "passes": passes, "pass_rate": passes / (count + missing)}
    return figures


def describe_values(values: Column, ddof: int) -> dict[str, float | None]:
    """Return mean, median, minimum, maximum and standard deviation.

    The standard deviation is 0 for a single value, and None if there are otherwise too few values for *ddof*.
    """
    import numpy as np

    power = common_power(values)
    values = divide_by_power(values, power)
    with ignore_float_warnings():
        spread = values.std(ddof=ddof) if len(values) > max(1, ddof) else 0.0 if len(values) == 1 else nan
        figures = {"mean": mean_of(values), "median": np.median(values), "min": values.min(), "max": values.max()}
        return {name: multiply_by_power(value, power) for name, value in {**figures, "std": spread}.items()}
