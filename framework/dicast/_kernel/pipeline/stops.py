"""Checks of the section ``early_stop`` against the gate and the source."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ..plan.clauses import Gate
from ..plan.labels import score_label
from ..plan.sections import Slot
from ..values import RECORDED_PREFIX
from ..values.names import nearest
from .faults import Part
from .gate import GatedLabels, clause_place, gate_line, only_label
from .parts import Placed, SectionBuilder
from .raw_scale import raw_labels

_SCORES, _FLAGS = "scores.", "score_flags."
"""Beginnings of the paths of scores, and of answers whether a score passes, under a record's ``metrics``."""


def check_stops(
    sections: SectionBuilder,
    stops: Sequence[Placed],
    gate: Gate,
    source: Slot | None,
    gated: GatedLabels,
    *,
    has_metrics: bool,
) -> None:
    """Report an early stop without the random order, the line, the metric or the scores in [0, 1] that it needs, and a clause without its early stop.

    :param has_metrics: True if records have other metrics than the scores of the *gated* labels.
    """
    if sections.faults:
        return  # the labels of components with faults are unknown
    if not has_metrics:
        _check_watched_metrics(sections, stops, gated.existing)
    labels, raw = gated.declared, raw_labels(gated.metrics)
    counting = [(path, slot) for path, slot in stops if getattr(slot.component, "needs_shuffle", False)]
    for at, slot in counting if source is not None and source.shuffle is None else ():
        message = f"{slot.name} needs rows in random order; add shuffle: SEED (an integer) to the source's options"
        sections.fault(at, message)
    for at, slot in counting:
        on = slot.component.on
        if on in raw:
            message = f"{slot.name} needs scores in [0, 1], but {on} has a raw scale; give its metric a range"
            sections.fault(at, message)
        needs_line = on is not None and getattr(slot.component, "needs_line", False)
        if needs_line and gate_line(gate, labels, on) is None:
            message = (
                f"{slot.name} needs a line; add at: LINE, or a gate on {slot.component.on} with min_score or max_score"
            )
            sections.fault(at, message)
    watched = [slot.component.on for _, slot in counting]
    for index, clause in enumerate(gate.clauses):
        on = clause.on or only_label(labels)
        if clause.bound == "anytime" and on is not None and on not in watched:
            message = f"bound: anytime needs an early stop with an interval: early_stop: [{{trust/anytime: {{on: {on}, at: …}}}}]"
            sections.fault((*clause_place(sections.file, index), "bound"), message, clause.bound)


def _check_watched_metrics(sections: SectionBuilder, stops: Sequence[Placed], labels: Sequence[str]) -> None:
    """Report a metric in the options of *stops* that no record has, in a file whose records have only the scores of *labels*."""
    choices = ["score", *(f"{_SCORES}{label}" for label in labels)]
    for at, slot in stops:
        for option, metric in getattr(slot.component, "metric_options", {}).items():
            if metric in choices or metric.startswith((f"{_SCORES}{RECORDED_PREFIX}", _FLAGS)):
                continue
            label = metric.rpartition(".")[2] if metric not in labels else metric
            hint = f"{_SCORES}{label}" if label in labels else nearest(metric, choices)
            message = (
                f"{option} of {slot.name} is {metric!r}, but a row has no such metric; choose from {', '.join(choices)}"
            )
            sections.fault((*at, Part(slot.name), option), message, metric, hint)


def with_score_label(
    sections: SectionBuilder, stops: Sequence[Placed], gate: Gate, labels: Sequence[str]
) -> list[Placed]:
    """Return *stops*. A stop that watches the run's score gets the score's label as ``on``; if the score has no label, the stop is reported."""
    label, labeled = score_label(gate, labels), list[Placed]()
    for at, slot in stops:
        component = slot.component
        if not getattr(component, "needs_score", False):
            labeled.append((at, slot))
            continue
        has_on = getattr(component, "needs_shuffle", False)  # such a stop has an option ``on``
        if label is None and (len(labels) > 1 or has_on):
            state = f"the file has several labels ({', '.join(labels)})" if labels else "the file declares no label"
            option = next(iter(getattr(component, "metric_options", {})), None)
            other = f", or with {option}: scores.{labels[0]}" if option and labels else ""
            fix = f"choose one with gate: {{on: LABEL}}{other}"
            sections.fault(at, f"{slot.name} watches the run's score, but {state}; {fix}")
        component = attrs.evolve(component, on=label) if has_on else component
        labeled.append((at, attrs.evolve(slot, component=component)))
    return labeled
