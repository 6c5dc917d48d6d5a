"""Reasons of a gate in words for a reader, and the labels on which a passed gate has no answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..values.passes import shown_label

_UNCOMPARED = " is not compared with "
"""Words of a gate's reason between the label and the baseline with the cause."""


def gate_reasons(done: Mapping[str, Any]) -> list[str]:
    """Return the reasons of the gate, and why the run of the document *done* is undecided; labels that are not compared for one cause share a sentence."""
    labels: dict[str, list[str]] = {}
    for reason in dict.fromkeys([*((done["gate"] or {}).get("reasons") or ()), *done["undecided"]]):
        label, words, cause = reason.partition(_UNCOMPARED)
        labels.setdefault(f"{words}{cause}" or reason, []).extend([label] if words else [])
    return [
        f"{', '.join(names)}{cause if len(names) < 2 else cause.replace(' is ', ' are ', 1)}"
        for cause, names in labels.items()
    ]


def unanswered_labels(done: Mapping[str, Any]) -> list[str]:
    """Return the labels of clauses without an answer in a gate that passed; a clause on no label has ``-``."""
    gate = done["gate"] or {"passed": None}
    clauses = gate.get("clauses", ()) if gate["passed"] else ()  # documents of older versions have no clauses
    labels = [clause["on"] for clause in clauses if clause["passed"] is None]
    return [*dict.fromkeys("-" if label is None else shown_label(done, label) for label in labels)]
