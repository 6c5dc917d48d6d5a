"""Percentiles of ascending values."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal


def places(count: int, share: float) -> tuple[int, float]:
    """Return the index of the value at *share* of *count* values, and the fraction of a step beyond it.

    The decimal notation of *share* is taken as exact.
    """
    part, denominator = Decimal(repr(share)).as_integer_ratio()
    below, rest = divmod((count - 1) * part, denominator)
    return below, rest / denominator


def percentile(ascending: Sequence[float], share: float) -> float:
    """Return the value below which *share* of the values are, with linear interpolation."""
    below, rest = places(len(ascending), share)
    return ascending[below] + (ascending[below + 1] - ascending[below]) * rest if rest else ascending[below]
