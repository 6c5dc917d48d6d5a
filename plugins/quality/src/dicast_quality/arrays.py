"""Whether figures are made a column at a time, with numpy, or one by one: of many rows the import pays, and without numpy there is no choice."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from math import fsum
from types import ModuleType
from typing import Any

MANY = 50_000
"""Rows from which on numpy is imported, which takes as long as 50,000 rows one by one."""

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


def view(np: ModuleType, column: array[Any]) -> Array:
    """*column* as an array of numpy, without a copy."""
    return np.frombuffer(column, column.typecode) if len(column) else np.empty(0, column.typecode)


def split(np: ModuleType, keys: Array) -> Iterator[tuple[int, Array]]:
    """Each of *keys*, with the places that have it in their order."""
    if not len(keys):
        return
    small = keys.astype("h") if keys.min() >= -(2**15) and keys.max() < 2**15 else keys  # these are sorted by radix
    order = np.argsort(small, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
        yield int(ordered[start]), order[start:end]


def total(np: ModuleType, amounts: Array) -> int:
    """The exact sum of whole numbers, which may not fit into 8 bytes."""
    return (int((amounts >> 32).sum()) << 32) + int((amounts & 0xFFFFFFFF).sum())


def floats(column: Array) -> Sequence[float]:
    """An array of numpy as one of the standard library."""
    found = array("d")
    found.frombytes(column.tobytes())
    return found


def average(column: Array) -> float | None:
    """The mean of *column*, as :func:`dicast.mean` has it."""
    if not len(column):
        return None
    least, most = float(column.min()), float(column.max())
    return least if least == most else min(max(fsum(floats(column)) / len(column), least), most)
