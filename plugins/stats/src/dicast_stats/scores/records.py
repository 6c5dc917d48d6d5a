"""Metrics and scores in a record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from math import isfinite
from typing import Any

from dicast import Record
from dicast.toolkit.json_values import MISSING, lookup

from ..numbers.values import number, number_or_nan

_NAMED = 10
"""How many places are named to choose from."""

_NONE: Mapping[str, object] = {}


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
