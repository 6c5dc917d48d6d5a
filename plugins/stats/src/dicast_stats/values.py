"""Numbers: what counts as one in a record, and what of a library's may be written as JSON."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from math import isfinite, nan
from typing import TYPE_CHECKING, Any

from dicast import Record
from dicast.toolkit.json_values import MISSING, lookup

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.float64]

_NUMBER = re.compile(r"\s*[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\s*")
"""A text that is a number: what Python reads beside it, 1_000 or other scripts' digits, is none."""

_NAMED = 10
"""How many places are named to choose from."""

_NONE: Mapping[str, object] = {}


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


def mapping(record: Record, path: str = "") -> Mapping[str, object]:
    """The metrics of *record* or of a response, or the object at *path* in them; an empty one where there is none."""
    found: Any = record.get("metrics")
    if path and found is not None:
        found = found.get(path) if found.__class__ is dict and "." not in path else lookup(found, path)
    return found if found.__class__ is dict or isinstance(found, Mapping) else _NONE


def finder(path: str) -> Callable[[Record], Mapping[str, object]]:
    """What finds the object at *path* in a record's metrics as :func:`mapping` does, quicker where *path* is a name."""

    def named(record: Record) -> Mapping[str, object]:
        metrics = record.get("metrics")
        found: Any = metrics.get(path) if metrics.__class__ is dict else None
        return found if found.__class__ is dict else mapping(record, path)

    return named if "." not in path else lambda record: mapping(record, path)


def value_at(record: Record, path: str) -> object:
    """What the metrics of *record* have at the dotted *path*; None where they have nothing."""
    found = lookup(mapping(record), path)
    return None if found is MISSING else found


def nowhere(path: str, what: str, record: Record) -> str:
    """What to say where no record has *what* at *path*; *record* is one of them."""
    there = [repr(name) for name in islice(_leaves(mapping(record)), _NAMED)]
    return f"no record has {what} at metrics.{path}; there is {', '.join(there) or 'nothing'}"


def _leaves(metrics: Mapping[str, object], place: str = "") -> Iterator[str]:
    for name, value in metrics.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{place}{name}.")
        else:
            yield f"{place}{name}"


def score_of(record: Record) -> float | None:
    """Return the ``metrics.score`` of *record*, else the mean of its ``metrics.scores``; None without a number.

    A null score is that of a run with several labels, none of which counts: then there is none.
    """
    metrics = mapping(record)
    score = number(metrics.get("score"))
    if score is not None or ("score" in metrics and metrics["score"] is None):
        return score
    values = mapping(record, "scores").values()
    scores = [value if value.__class__ is float else number_or_nan(value) for value in values]
    if not isfinite(sum(scores)):
        scores = [score for score in scores if isfinite(score)]
    return _mean(scores) if scores else None


def _mean(scores: Sequence[float]) -> float:
    mean = sum(scores) / len(scores)
    mean = mean if isfinite(mean) else sum(score / len(scores) for score in scores)
    return min(max(mean, min(scores)), max(scores))


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
