"""Rules for metrics on a raw scale, whose numbers no ``range`` maps to [0, 1]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..plan.clauses import Gate
from ..plan.sections import METRICS, Pipeline, Scoring, Slot
from .faults import Part
from .faults import Path as Address
from .parts import Placed

Misuse = tuple[Address, str, object]
"""A place, a message, and the value there."""

ADVICE = "give it a range, as in range: [0, 100], or weight: 0"


def raw_labels(metrics: Sequence[Slot]) -> tuple[str, ...]:
    """Return the labels with raw values: raw metrics, and :data:`METRICS` if one of them has a weight."""
    raw = [slot for slot in metrics if slot.is_raw]
    combined = (METRICS,) if any(slot.weight for slot in raw) else ()
    return (*(slot.label for slot in raw), *combined)


def raw_pass_lines(pipeline: Pipeline) -> dict[str, float | None]:
    """Return the ``pass_at`` of each raw label; None if the file has none."""
    return _lines(pipeline.metrics)


def _lines(metrics: Sequence[Slot]) -> dict[str, float | None]:
    raw = [slot for slot in metrics if slot.is_raw]
    counted = [slot.pass_at for slot in raw if slot.weight]
    return {slot.label: slot.pass_at for slot in raw} | ({METRICS: counted[0]} if counted else {})


def metric_faults(metrics: Sequence[Placed], scoring: Scoring, task: Slot | None) -> Iterator[Misuse]:
    """Yield the faults of raw metrics, each alone and in combination with others."""
    raw = [(path, slot) for path, slot in metrics if slot.is_raw]
    for path, slot in raw:
        at = (*path, Part(slot.name))
        if slot.tier == "proxy":
            yield (
                at,
                f"{slot.name} has a raw scale, but a proxy is compared with scoring.threshold in [0, 1]; give it a range",
                None,
            )
        if slot.on_failure == "zero":
            yield (
                (*at, "on_failure"),
                f"0 is not the lowest score of {slot.name}, which has a raw scale; {ADVICE}",
                "zero",
            )
    at, counted = next(((path, slot) for path, slot in raw if slot.weight), ((), None))
    if counted is None:
        return
    other_labels = [slot.label for _, slot in metrics if slot is not counted and slot.weight and slot.tier == "truth"]
    if other_labels:
        message = f"{counted.label} has a raw scale, but {', '.join(other_labels)} has a weight too; {ADVICE}"
        yield (*at, Part(counted.name)), message, None
    if scoring.audit is not None:
        yield (
            ("scoring", "audit"),
            f"audits correct means in [0, 1], but {counted.label} has a raw scale; {ADVICE}",
            None,
        )
    if task is not None and task.on_failure == "zero":
        message = f"0 is not the lowest score of {counted.label}, which has a raw scale; {ADVICE}"
        yield ("task", Part(task.name), "on_failure"), message, "zero"


def clause_faults(gate: Gate, metrics: Sequence[Slot], default_label: str | None) -> Iterator[tuple[int, str, str]]:
    """Yield (index of the clause, option, message) for rules that need figures that a raw label lacks.

    *default_label* is the label of a clause without ``on``.
    """
    raw, lines = raw_labels(metrics), _lines(metrics)
    for index, clause in enumerate(gate.clauses):
        on = clause.on or default_label
        if on not in raw:
            continue
        if clause.min_pass_rate is not None and lines[on] is None:
            yield (
                index,
                "min_pass_rate",
                f"{on} has a raw scale; set pass_at of the metric to the smallest passing number",
            )
        if clause.bound == "anytime":
            yield index, "bound", f"{on} has a raw scale, but bound: anytime needs scores in [0, 1]; give it a range"
