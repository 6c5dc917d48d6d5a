"""Numbers: what counts as one in a record, and what of a library's may be written as JSON."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite, nan
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.float64]

_NUMBER = re.compile(r"\s*[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\s*")
"""A text that is a number: what Python reads beside it, 1_000 or other scripts' digits, is none."""


def number(value: object) -> float | None:
    """*value* as a finite number: a number, a boolean as 1 or 0, a text that is one; None for anything else."""
    if value.__class__ is float:
        return value if isfinite(value) else None
    if not isinstance(value, (int, float, str)) or (isinstance(value, str) and not _NUMBER.fullmatch(value)):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if isfinite(found) else None


def number_or_nan(value: object) -> float:
    """The same, NaN where it is no number."""
    found = number(value)
    return nan if found is None else found


def finite(values: Column) -> Column:
    """Those of *values* that are finite."""
    import numpy as np  # 0.1 s, which starting a run does not spend

    there = np.isfinite(values)
    return values if there.all() else values[there]


def plain(value: float) -> float | None:
    """*value*, which may be a library's own kind of number, as JSON has it: None where it is not finite."""
    found = float(value) + 0.0  # no negative zero
    return found if isfinite(found) else None


@contextmanager
def quiet() -> Iterator[None]:
    """While the block runs, libraries do not warn of what is looked at anyway: values all alike, results that are not finite."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield
