"""Whether figures are made a column at a time, with numpy, or one by one: of many rows the import pays, and without numpy there is no choice."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from types import ModuleType
from typing import Any

from .percentile import percentile, places

MANY = 50_000
"""Rows from which on numpy is imported, which takes as long as 50,000 rows one by one."""

_TOGETHER = 30_000
"""Values that are added up at once: so many stay in the processor's own memory."""

Array = Any
"""An array of numpy."""


def numpy_for(rows: int) -> ModuleType | None:
    """Numpy where there are so many *rows* that it pays, and it is installed (``dicast[arrays]``)."""
    if rows < MANY:
        return None
    try:
        import numpy as np
    except ImportError:
        return None
    return np


def average(np: ModuleType, column: Array) -> float | None:
    """The mean of *column*, as :func:`dicast.mean` has it."""
    if not len(column):
        return None
    least, most = float(column.min()), float(column.max())
    if least == most:
        return least
    whole = exact_total(np, column) if least >= 0 and most <= 1 else fsum(column.tolist())
    return min(max(whole / len(column), least), most)


def exact_total(np: ModuleType, column: Array) -> float:
    """The sum of *column*, values from 0 to 1, rounded once, as :func:`math.fsum` has it: by the first 40 bits of each, and the next 40."""
    total = 0
    for start in range(0, len(column), _TOGETHER):
        part = column[start : start + _TOGETHER]
        high = (part * 2.0**40).astype("q")
        rest = (part - high * 2.0**-40) * 2.0**80
        low = rest.astype("q")
        if (low != rest).any():  # a value is so small that it has more bits
            return fsum(column.tolist())
        total += (int(high.sum()) << 40) + int(low.sum())
    return total / 2**80


def percentiles(np: ModuleType, column: Array, shares: Sequence[float]) -> list[float | None]:
    """The value below which each of *shares* of *column* lie, as :func:`.percentile.percentile` has it."""
    if not len(column):
        return [None] * len(shares)
    below = [places(len(column), share)[0] for share in shares]
    parted = np.partition(column, sorted({min(place + more, len(column) - 1) for place in below for more in (0, 1)}))
    return [float(percentile(parted, share)) for share in shares]
