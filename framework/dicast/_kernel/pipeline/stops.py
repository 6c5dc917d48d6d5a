"""Checks of the section ``early_stop`` against the gate and the source."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ..plan.clauses import Gate
from ..plan.labels import score_label
from ..plan.sections import Slot
from .gate import clause_place, gate_line, only_label
from .parts import Placed, SectionBuilder


def check_stops(
    sections: SectionBuilder,
    stops: Sequence[Placed],
    gate: Gate,
    source: Slot | None,
    labels: Sequence[str],
    raw: Sequence[str],
) -> None:
    """Report an early stop without the random order, the line or the scores in [0, 1] that it needs, and a clause without its early stop.

    :param labels: the labels that the file declares; the labels in *raw* have raw values.
    """
    if sections.faults:
        return  # the labels of components with faults are unknown
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
            sections.fault(at, f"{slot.name} watches the run's score, but {state}; choose one with gate: {{on: LABEL}}")
        component = attrs.evolve(component, on=label) if has_on else component
        labeled.append((at, attrs.evolve(slot, component=component)))
    return labeled
