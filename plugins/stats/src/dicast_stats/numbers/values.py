"""Numbers in records, and numbers for JSON."""

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
"""Pattern of a number in a text. Further spellings that Python accepts do not count: 1_000, digits of other scripts."""


def parse_number(value: object) -> float | None:
    """Return *value* as a finite number: a number, a boolean as 1 or 0, or the text of a number. None for anything else."""
    if value.__class__ is float:
        return value if isfinite(value) else None
    if not isinstance(value, (int, float, str)) or (isinstance(value, str) and not _NUMBER.fullmatch(value)):
        return None
    try:
        result = float(value)
    except OverflowError:
        return None
    return result if isfinite(result) else None


def number_or_nan(value: object) -> float:
    """Return *value* as :func:`parse_number` does, with NaN in place of None."""
    result = parse_number(value)
    return nan if result is None else result


def finite_values(values: Column) -> Column:
    """Return the finite numbers of *values*."""
    import numpy as np  # 0.1 s, which starting a run does not spend

    is_finite = np.isfinite(values)
    return values if is_finite.all() else values[is_finite]


def json_number(value: float) -> float | None:
    """Return *value*, which may be a numpy or scipy scalar, as a float for JSON; None if it is not finite."""
    result = float(value) + 0.0  # no negative zero
    return result if isfinite(result) else None


@contextmanager
def ignore_float_warnings() -> Iterator[None]:
    """Ignore RuntimeWarning inside the block: callers check for constant values and for results that are not finite."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield
