"""Statistics of numpy columns. They equal the statistics of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from types import ModuleType
from typing import Any

from .percentile import percentile, places

_CHUNK = 30_000
"""Values added at once: so many fit into the processor's cache."""

Array = Any
"""An array of numpy."""


def average(np: ModuleType, column: Array) -> float | None:
    """Return the mean of *column*, equal to :func:`dicast.mean`."""
    if not len(column):
        return None
    least, most = float(column.min()), float(column.max())
    if least == most:
        return least
    total = exact_total(np, column) if least >= 0 and most <= 1 else fsum(column.tolist())
    return min(max(total / len(column), least), most)


def exact_total(np: ModuleType, column: Array) -> float:
    """Return the sum of *column*, values from 0 to 1, rounded once, like :func:`math.fsum`.

    It adds the first 40 bits of all values, and the next 40 bits, as integers.
    """
    total = 0
    for start in range(0, len(column), _CHUNK):
        part = column[start : start + _CHUNK]
        high = (part * 2.0**40).astype("q")
        rest = (part - high * 2.0**-40) * 2.0**80
        low = rest.astype("q")
        if (low != rest).any():  # a small value has more bits than 80
            return fsum(column.tolist())
        total += (int(high.sum()) << 40) + int(low.sum())
    return total / 2**80


def percentiles(np: ModuleType, column: Array, shares: Sequence[float]) -> list[float | None]:
    """Return the percentile of *column* for each of *shares*, equal to :func:`.percentile.percentile`."""
    if not len(column):
        return [None] * len(shares)
    below = [places(len(column), share)[0] for share in shares]
    parted = np.partition(column, sorted({min(place + step, len(column) - 1) for place in below for step in (0, 1)}))
    return [float(percentile(parted, share)) for share in shares]
