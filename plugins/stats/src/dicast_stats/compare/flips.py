"""Subjects that pass in one run alone, with their scores."""

from __future__ import annotations

from math import isnan
from typing import Any

from dicast import Results
from dicast.reporting import PairedPasses

from ..changes.pairs import pair_label
from ..scores.table import Key, Table


def list_flips(pairs: PairedPasses, baseline: Results, variant: Results) -> list[dict[str, Any]]:
    """Return the subjects whose pass has changed, in the order of *baseline*, under each label.

    ``a`` and ``b`` state whether the subject passed in baseline and variant. ``score_a`` and ``score_b`` are its scores under ``label``; null
    if a flag alone decided, and for a score of another tool. ``unchanged`` is true for a subject whose output and judge are equal in both runs.
    """
    before, after = Table.of(baseline), Table.of(variant)
    labels = before.criteria & after.criteria

    def varied(label: str) -> frozenset[Key]:
        return pair_label(baseline, variant, label).varied if label in labels else frozenset()

    return [
        {
            "subject_kind": change.subject[0],
            "subject_id": change.subject[1],
            "label": change.label,
            "a": change.a,
            "b": change.b,
            "score_a": _score(before, change.subject, change.label),
            "score_b": _score(after, change.subject, change.label),
            **({"unchanged": True} if change.subject in varied(change.label) else {}),
        }
        for change in pairs.changes()
    ]


def _score(table: Table, subject: Key, label: str) -> float | None:
    row = table.rows.get(subject)
    if row is None or label.startswith("recorded/"):  # records have no scores of other tools
        return None
    value = float((table.scores(label) if label in table.criteria else table.record_scores)[row])
    return None if isnan(value) else value
