"""Dimensions of a verdict: their names, scales and weights."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

import attrs

from .._kernel.values import Rubric
from .._kernel.values.aggregation import mean
from .._kernel.values.errors import ConfigError, Problem
from .._kernel.values.names import nearest

CONSTRAINTS = "hard_constraints_satisfied"
RESERVED = ("seal", "rationale", "score", "confidence", CONSTRAINTS)

INSTRUCTIONS = (
    "You judge what is shown to you, by the dimensions below. Be unsure where what you see leaves room for doubt."
)
"""The instructions of a rubric with dimensions that has no ``instructions``."""

_KEYS = ("id", "version", "name", "follows", "instructions", "dimensions")
_OF_LOOPS = (
    "target_score",
    "max_iterations",
    "plateau_window",
)  # options of loops that improve an output by the rubric's scores
_DIMENSION_KEYS = ("name", "weight", "scale", "criteria")
_SCALE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*-\s*([0-9]+(?:\.[0-9]+)?)\s*")
_SUM_MAY_DIFFER = 1e-6


@attrs.frozen
class Dimension:
    """One dimension: its *name* in the verdict, its *weight* above 0, its scale, and its *criteria* in the rubric."""

    name: str
    weight: float
    low: float = 0.0
    high: float = 1.0
    criteria: str = ""

    @property
    def scale(self) -> str:
        """The scale as text, such as ``0 to 1``."""
        return f"{self.low:g} to {self.high:g}"


def collapse(dimensions: Sequence[Dimension], values: Mapping[str, float]) -> float:
    """Return the weighted mean of *values*, each divided by the upper end of its scale. It is between the least and the greatest quotient."""
    return mean(
        [values[dimension.name] / dimension.high for dimension in dimensions],
        [dimension.weight for dimension in dimensions],
    )


def of_option(weights: Mapping[str, float]) -> tuple[Dimension, ...]:
    """Return the dimensions of the option *weights*, each on a scale from 0 to 1.

    :raises ConfigError: with all faults of the option.
    """
    problems = [
        Problem(
            f"dimension {name!r} cannot be called so; the verdict has a key of this name", path="dimensions", value=name
        )
        for name in weights
        if name in RESERVED or not name
    ] + [
        Problem(
            f"the weight of dimension {name!r} is a number above 0, not {weight!r}", path="dimensions", value=weight
        )
        for name, weight in weights.items()
        if isinstance(weight, bool) or not 0 < weight < math.inf
    ]
    if not problems and weights and not math.isfinite(sum(weights.values())):
        problems = [Problem("the weights of the dimensions are too large to add up", path="dimensions")]
    if problems:
        raise ConfigError(problems)
    return tuple(Dimension(name, float(weight)) for name, weight in weights.items())


def of_rubric(rubric: Rubric) -> tuple[Dimension, ...]:
    """Return the dimensions of *rubric*, which is YAML: ``dimensions: [{name, weight, scale: "1-10", criteria}]``.

    :raises ConfigError: with all faults of the rubric; the weights must sum to 1.
    """
    items = rubric.data["dimensions"]
    problems = list(_unknown(rubric.data, (*_KEYS, *_OF_LOOPS), ""))
    if not isinstance(rubric.data.get("instructions", ""), str):
        problems.append(_wrong("instructions", rubric.data["instructions"], "a text"))
    dimensions: list[Dimension] = []
    if not isinstance(items, list) or not items:
        problems.append(_wrong("dimensions", items, "a list of {name, weight, scale, criteria}"))
    else:
        for number, item in enumerate(items):
            problems += _faults(item, f"dimensions[{number}]")
        if not problems:
            dimensions = [_dimension(item) for item in items]
            problems = list(_faults_together(dimensions))
    if problems:
        raise ConfigError(
            [attrs.evolve(problem, message=f"rubric {rubric.id}: {problem.message}") for problem in problems]
        )
    return tuple(dimensions)


def _faults(item: object, path: str) -> Iterator[Problem]:
    """Yield the problems of one dimension."""
    if not isinstance(item, Mapping):
        yield _wrong(path, item, "a mapping with name, weight, scale and criteria")
        return
    yield from _unknown(item, _DIMENSION_KEYS, f"{path}.")
    name, weight, scale, criteria = (item.get(key) for key in _DIMENSION_KEYS)
    if not isinstance(name, str) or not name or name in RESERVED:
        yield _wrong(f"{path}.name", name, f"a text, and none of {', '.join(RESERVED)}")
    if not isinstance(weight, int | float) or isinstance(weight, bool) or not 0 < weight <= 1:
        yield _wrong(f"{path}.weight", weight, "a number above 0, 1 at most")
    ends = _SCALE.fullmatch(scale) if isinstance(scale, str) else None
    if ends is None or not float(ends[1]) < float(ends[2]):
        yield _wrong(f"{path}.scale", scale, "its lowest and its highest number, 0 or more, such as 1-10")
    if not isinstance(criteria, str | None):
        yield _wrong(f"{path}.criteria", criteria, "a text")


def _faults_together(dimensions: Sequence[Dimension]) -> Iterator[Problem]:
    names = [dimension.name for dimension in dimensions]
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        yield Problem(f"two dimensions are called {name!r}", path="dimensions", value=name)
    total = math.fsum(dimension.weight for dimension in dimensions)
    if abs(total - 1) > _SUM_MAY_DIFFER:
        yield Problem(f"the weights of the dimensions sum to {total:.6g}, they must sum to 1", path="dimensions")


def _dimension(item: Mapping[str, object]) -> Dimension:
    ends = _SCALE.fullmatch(str(item["scale"]))
    assert ends is not None  # it was checked
    weight = item["weight"]
    assert isinstance(weight, int | float)
    return Dimension(
        str(item["name"]), float(weight), float(ends[1]), float(ends[2]), str(item.get("criteria") or "").strip()
    )


def _unknown(data: Mapping[str, object], keys: Sequence[str], path: str) -> Iterator[Problem]:
    for key in data:
        if key not in keys:
            yield Problem(f"unknown key {path}{key}", path=f"{path}{key}", value=key, hint=nearest(str(key), keys))


def _wrong(path: str, value: object, expected: str) -> Problem:
    state = "is missing; it is" if value is None else f"is {value!r:.80}, it must be"
    return Problem(f"{path} {state} {expected}", path=path, value=value)
