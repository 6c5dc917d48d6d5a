"""Figures of a column of scores."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

from ..numbers.scale import divided, mean_of, multiplied, power_of
from ..numbers.values import quiet

if TYPE_CHECKING:
    from ..numbers.values import Column


def summary(scores: Column, missing: int, flagged: int, passes: int, ddof: int = 0) -> dict[str, Any]:
    """The figures of *scores*, of which *missing* more are not there, and what there is of flags."""
    count = len(scores)
    found: dict[str, Any] = {"count": count, "missing": missing}
    if count:
        found |= distribution(scores, ddof)
    if count + missing:
        found |= {"flagged": flagged, "passes": passes, "pass_rate": passes / (count + missing)}
    return found


def distribution(values: Column, ddof: int) -> dict[str, float | None]:
    """Mean, median, least, greatest and standard deviation; the last is 0 of one value, None of others too few for *ddof*."""
    import numpy as np

    power = power_of(values)
    values = divided(values, power)
    with quiet():
        spread = values.std(ddof=ddof) if len(values) > max(1, ddof) else 0.0 if len(values) == 1 else nan
        figures = {"mean": mean_of(values), "median": np.median(values), "min": values.min(), "max": values.max()}
        return {name: multiplied(value, power) for name, value in {**figures, "std": spread}.items()}
