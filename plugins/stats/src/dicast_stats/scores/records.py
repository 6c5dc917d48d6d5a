"""Readers of the metrics and scores in a record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

from dicast import Record
from dicast.toolkit.json_values import MISSING, lookup

from ..numbers.values import number_or_nan, parse_number

_MAX_NAMES = 10
"""Largest number of metrics in a message."""

_NO_METRICS: Mapping[str, object] = {}


def read_metrics(record: Record, path: str = "") -> Mapping[str, object]:
    """Return the metrics of *record* or of a response, or the object at *path* in them; an empty mapping if there is none."""
    value: Any = record.get("metrics")
    if path and value is not None:
        value = value.get(path) if value.__class__ is dict and "." not in path else lookup(value, path)
    return value if value.__class__ is dict or isinstance(value, Mapping) else _NO_METRICS


def metrics_reader(path: str) -> Callable[[Record], Mapping[str, object]]:
    """Return a function that reads the object at *path* in a record's metrics.

    The result is the same as that of :func:`read_metrics`; the function is faster if *path* has no dots.
    """

    def named(record: Record) -> Mapping[str, object]:
        metrics = record.get("metrics")
        value: Any = metrics.get(path) if metrics.__class__ is dict else None
        return value if value.__class__ is dict else read_metrics(record, path)

    return named if "." not in path else lambda record: read_metrics(record, path)


def read_value(record: Record, path: str) -> object:
    """Return the value at the dotted *path* in the metrics of *record*; None if there is none."""
    value = lookup(read_metrics(record), path)
    return None if value is MISSING else value


def missing_metric_text(path: str, noun: str, record: Record) -> str:
    """Return the message that no record has *noun* at *path*, with the metrics that *record* has."""
    names = [*_leaves(read_metrics(record))]
    leaves = [repr(name) for name in names[:_MAX_NAMES]]
    meant = next((name for name in names if name in (f"scores.{path}", path.removeprefix("metrics."))), None)
    hint = f", did you mean {meant!r}?" if meant else ""
    return f"no record has {noun} at metrics.{path}; a record has {', '.join(leaves) or 'nothing'}{hint}"


def _leaves(metrics: Mapping[str, object], place: str = "") -> Iterator[str]:
    for name, value in metrics.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{place}{name}.")
        else:
            yield f"{place}{name}"


def record_score(record: Record) -> float | None:
    """Return the ``metrics.score`` of *record*, else the mean of its ``metrics.scores``; None without a number.

    A null ``metrics.score`` means that the run has several labels and no gate label: the result is None.
    """
    metrics = read_metrics(record)
    score = parse_number(metrics.get("score"))
    if score is not None or ("score" in metrics and metrics["score"] is None):
        return score
    values = read_metrics(record, "scores").values()
    scores = [value if value.__class__ is float else number_or_nan(value) for value in values]
    if not isfinite(sum(scores)):
        scores = [score for score in scores if isfinite(score)]
    return _bounded_mean(scores) if scores else None


def _bounded_mean(scores: Sequence[float]) -> float:
    mean = sum(scores) / len(scores)
    mean = mean if isfinite(mean) else sum(score / len(scores) for score in scores)
    return min(max(mean, min(scores)), max(scores))
