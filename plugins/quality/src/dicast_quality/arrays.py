"""Whether figures are made a column at a time, with numpy, or one by one: of many rows the import pays, and without numpy there is no choice."""

from __future__ import annotations

from array import array
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


def floats(column: Array) -> array[float]:
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
