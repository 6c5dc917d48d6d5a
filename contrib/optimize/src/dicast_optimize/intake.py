"""Requirements for a text: quality dimensions whose weights sum to 1, and hard constraints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

import attrs

UNITS = 10_000
PATTERNS = ("verification", "judge", "simulation", "composite")
MODES = ("command", "http")
DIMENSIONS = {"correctness": 0.4, "clarity": 0.35, "conciseness": 0.25}

Report = Callable[[tuple[str | int, ...], str, object], None]


@attrs.frozen
class Dimension:
    """A quality, with its share of the score."""

    name: str
    weight: float
    description: str = ""


@attrs.frozen
class Intake:
    """Requirements for a text. *execution_mode* is None if the spec does not demand one."""

    artifact_class: str = "general_text"
    quality_dimensions: tuple[Dimension, ...] = tuple(Dimension(name, weight) for name, weight in DIMENSIONS.items())
    hard_constraints: tuple[str, ...] = ()
    evaluation_pattern: str = "judge"
    execution_mode: str | None = None


def shares(weights: Sequence[float]) -> list[float]:
    """Return *weights* scaled to a sum of 1 with 4 decimals (largest remainder method; ties go to the lower index)."""
    top = max(weights)
    scaled = [weight / top for weight in weights]  # first, because the sum of large weights may be infinite
    exact = [weight / sum(scaled) * UNITS for weight in scaled]
    units = [int(share) for share in exact]
    by_remainder = sorted(range(len(units)), key=lambda n: (units[n] - exact[n], n))
    for n in by_remainder[: UNITS - sum(units)]:
        units[n] += 1
    return [unit / UNITS for unit in units]


def read_intake(section: Mapping[str, Any], report: Report) -> Intake:
    """Return the intake in *section*. *report* gets each problem, with its address in the section."""
    options: dict[str, Any] = {}
    if "artifact_class" in section:
        options["artifact_class"] = _text(section["artifact_class"], ("artifact_class",), report)
    for name, choices in (("evaluation_pattern", PATTERNS), ("execution_mode", MODES)):
        if name in section and section[name] not in choices:
            report((name,), f"{name} is one of {', '.join(choices)}", section[name])
        elif name in section:
            options[name] = section[name]
    if "hard_constraints" in section:
        options["hard_constraints"] = _constraints(section["hard_constraints"], report)
    if "quality_dimensions" in section:
        options["quality_dimensions"] = _dimensions(section["quality_dimensions"], report)
    return Intake(**options)


def _text(value: object, address: tuple[str | int, ...], report: Report) -> str:
    if not isinstance(value, str) or not value.strip():
        report(address, "must be a text that is not blank", value)
        return ""
    return value.strip()


def _constraints(value: object, report: Report) -> tuple[str, ...]:
    """Return the trimmed constraints, without blank and repeated ones."""
    if not isinstance(value, list):
        report(("hard_constraints",), "hard_constraints is a list of texts", value)
        return ()
    for n, item in enumerate(value):
        if not isinstance(item, str):
            report(("hard_constraints", n), "a constraint is a text", item)
    return tuple(dict.fromkeys(item.strip() for item in value if isinstance(item, str) and item.strip()))


def _dimensions(value: object, report: Report) -> tuple[Dimension, ...]:
    at = "quality_dimensions"
    items: list[tuple[tuple[str | int, ...], object]]
    if isinstance(value, dict):
        items = [((at, name), _named(name, item)) for name, item in value.items()]
    elif isinstance(value, list):
        items = [((at, n), item) for n, item in enumerate(value)]
    else:
        report((at,), f"{at} is a list of {{name, weight}}", value)
        return ()
    read = [_dimension(item, address, report) for address, item in items]
    dimensions = [dimension for dimension in read if dimension is not None]
    for n, dimension in enumerate(dimensions):
        if dimension.name in (other.name for other in dimensions[:n]):
            report((at,), f"the dimension {dimension.name!r} is listed twice", dimension.name)
    if not items:
        report((at,), f"{at} names at least one dimension", value)
    weights = shares([dimension.weight for dimension in dimensions]) if dimensions else []
    return tuple(attrs.evolve(dimension, weight=weight) for dimension, weight in zip(dimensions, weights, strict=True))


def _named(name: str, item: object) -> object:
    return {"name": name, **item} if isinstance(item, dict) else {"name": name, "weight": item}


def _dimension(item: object, address: tuple[str | int, ...], report: Report) -> Dimension | None:
    if not isinstance(item, dict) or not {"name", "weight"} <= item.keys() <= {"name", "weight", "description"}:
        report(address, "a dimension has name and weight, and may have a description", item)
        return None
    name = _text(item["name"], (*address, "name"), report)
    weight = item["weight"]
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not isfinite(weight) or weight <= 0:
        report((*address, "weight"), "a weight is a finite number above 0", weight)
        return None
    return Dimension(name, float(weight), str(item.get("description", ""))) if name else None
