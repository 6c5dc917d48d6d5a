"""Figures of criteria in a run's document. Criteria occur only in its gate and its aggregates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_RULES = {"min_score": "mean", "max_score": "mean", "min_pass_rate": "pass_rate"}
"""The figure that each rule of the gate tests."""


def criteria(done: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the known figures of each criterion in the document *done*: ``mean``, ``pass_rate``, ``scored`` and ``total``.

    Figures of the gate take precedence over figures of an aggregate, whose pass rates may leave out rows without a record.
    """
    by_label: dict[str, dict[str, Any]] = {}
    for aggregate in done["aggregates"].values():
        listed = aggregate.get("criteria") if isinstance(aggregate, Mapping) else None
        for label, figures in listed.items() if isinstance(listed, Mapping) else ():
            if isinstance(figures, Mapping) and "count" in figures and "missing" in figures:
                names = ("mean", "pass_rate") if figures.get("flagged") else ("mean",)
                values = {name: figures[name] for name in names if name in figures}
                counts = {"scored": figures["count"], "total": figures["count"] + figures["missing"]}
                by_label.setdefault(str(label), values | counts)
    for clause in (done["gate"] or {}).get("clauses", ()):
        if clause["rule"] in _RULES and clause["on"] is not None:
            by_label.setdefault(clause["on"], {})[_RULES[clause["rule"]]] = clause["value"]
    judging = {"metrics", *done["metrics"], *done["judges"]}
    return {label: figures for label, figures in by_label.items() if label not in judging}
