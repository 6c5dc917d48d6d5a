"""Percentiles of values that ascend."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal


def places(count: int, share: float) -> tuple[int, float]:
    """The place of the value below which *share*, as it is written, of *count* values lie, and how far beyond it, as a part of one place."""
    part, whole = Decimal(repr(share)).as_integer_ratio()
    below, rest = divmod((count - 1) * part, whole)
    return below, rest / whole


def percentile(ascending: Sequence[float], share: float) -> float:
    """The value below which *share* of the values lie, interpolated linearly between neighbours."""
    below, rest = places(len(ascending), share)
    return ascending[below] + (ascending[below + 1] - ascending[below]) * rest if rest else ascending[below]
