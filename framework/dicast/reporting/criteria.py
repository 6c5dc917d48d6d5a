"""What a run's document says of criteria, which stand in its gate and its aggregates alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_RULES = {"min_score": "mean", "max_score": "mean", "min_pass_rate": "pass_rate"}
"""Which figure a rule of the gate is about."""


def criteria(done: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The figures of each criterion that the document *done* has: ``mean``, ``pass_rate``, ``scored`` and ``total``, those that are known.

    Those of the gate come before those of an aggregate, whose pass rates may leave rows without a record out.
    """
    found: dict[str, dict[str, Any]] = {}
    for aggregate in done["aggregates"].values():
        listed = aggregate.get("criteria") if isinstance(aggregate, Mapping) else None
        for label, figures in listed.items() if isinstance(listed, Mapping) else ():
            if isinstance(figures, Mapping) and "count" in figures and "missing" in figures:
                known = ("mean", "pass_rate") if figures.get("flagged") else ("mean",)
                told = {name: figures[name] for name in known if name in figures}
                counts = {"scored": figures["count"], "total": figures["count"] + figures["missing"]}
                found.setdefault(str(label), told | counts)
    for clause in (done["gate"] or {}).get("clauses", ()):
        if clause["rule"] in _RULES and clause["on"] is not None:
            found.setdefault(clause["on"], {})[_RULES[clause["rule"]]] = clause["value"]
    judging = {"metrics", *done["metrics"], *done["judges"]}
    return {label: figures for label, figures in found.items() if label not in judging}
