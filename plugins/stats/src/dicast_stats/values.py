"""Numbers: what counts as one in a record, and what of a library's may be written as JSON."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import isfinite
from typing import TYPE_CHECKING, Any

from dicast import MISSING, Record, lookup

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.float64]

_NOISE = 1e-12
"""How far apart values may lie, by the largest of them, and still be equal but for rounding."""

_NONE: Mapping[str, object] = {}


def number(value: object) -> float | None:
    """*value* as a finite number: a number, a boolean as 1 or 0, a text that is one; None for anything else."""
    if not isinstance(value, (int, float, str)):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if isfinite(found) else None


def mapping(record: Record, path: str = "") -> Mapping[str, object]:
    """The metrics of *record*, or the object at *path* in them; an empty one where there is none."""
    found: Any = record.get("metrics")
    if path and found is not None:
        found = lookup(found, path)
    return found if found.__class__ is dict or isinstance(found, Mapping) else _NONE


def value_at(record: Record, path: str) -> object:
    """What the metrics of *record* have at the dotted *path*; None where they have nothing."""
    found = lookup(mapping(record), path)
    return None if found is MISSING else found


def score_of(record: Record) -> float | None:
    """The ``metrics.score`` of *record*, else the mean of its ``metrics.scores``; None where it has no number."""
    score = number(mapping(record).get("score"))
    if score is not None:
        return score
    scores = [found for value in mapping(record, "scores").values() if (found := number(value)) is not None]
    return sum(scores) / len(scores) if scores else None


def plain(value: float) -> float | None:
    """*value*, which may be a library's own kind of number, as JSON has it: None where it is not finite."""
    found = float(value) + 0.0  # no negative zero
    return found if isfinite(found) else None


def varies(values: Column) -> bool:
    """Whether *values* differ by more than rounding does."""
    if not len(values):
        return False
    low, high = float(values.min()), float(values.max())
    return high - low > _NOISE * max(abs(low), abs(high))


@contextmanager
def quiet() -> Iterator[None]:
    """While the block runs, libraries do not warn of what is looked at anyway: values all alike, results that are not finite."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield
