"""Documents of runs that older versions recorded, converted to the current form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..plan.clauses import MIN_COVERAGE
from ..values import BASES

Document = Mapping[str, Any]

_UNKNOWN = dict.fromkeys(("pass_rate", "passes", "ci_low", "ci_high", "ci_method", "basis"))
"""Figures of a judge that older documents lack."""


def current_document(done: Document) -> Document:
    """Return the document *done* of a run with ``gate``, ``undecided`` and ``labels`` as a new run would have them.

    The document of an older run without a gate section has a gate on coverage alone; here it is None. The labels of an older run
    are unknown: ``labels`` has its score and its judges, with the recorded figures.
    """
    if "undecided" in done:
        return done
    gate = done.get("gate")
    reasons = list(gate["reasons"]) if gate is not None and gate["passed"] is None else []
    is_explicit = gate is not None and gate.get("given", not _is_usual(gate))
    return {**done, "gate": gate if is_explicit else None, "undecided": reasons, "labels": _labels(done)}


def _is_usual(gate: Document) -> bool:
    """Return True if *gate* is the default gate of a file without a gate section, in documents that do not state it."""
    clauses = gate.get("clauses", ())
    return not clauses or all(clause["rule"] == "min_coverage" and clause["line"] == MIN_COVERAGE for clause in clauses)


def _labels(done: Document) -> dict[str, Document]:
    score = done.get("score")
    score_label = (
        {}
        if score is None or "label" not in score
        else {score["label"]: {**score, "basis": _basis(score), **_counts(done)}}
    )
    judges = (done.get("judges") or {}).items()
    return score_label | {
        label: {**_UNKNOWN, **_failed(judge), **judge} for label, judge in judges if label not in score_label
    }


def _failed(judge: Document) -> Document:
    return {"failed": judge["total"] - judge["scored"]} if {"total", "scored"} <= judge.keys() else {}


def _basis(score: Document) -> str | None:
    bases = [basis for basis, count in (score.get("by_basis") or score.get("by_tier") or {}).items() if count]
    return max(bases, key=BASES.index, default=None)


def _counts(done: Document) -> Document:
    scored, failed = done["scored"], done["failed"]
    return {"scored": scored, "failed": failed, "total": scored + failed + done.get("unaffordable", 0)}
