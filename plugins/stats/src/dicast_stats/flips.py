"""Subjects that pass in one run and not in another."""

from __future__ import annotations

from typing import Any

from dicast import Record, Results

from .table import FLAGS
from .values import mapping, score_of

CUT = 0.5
"""A score from here on is a pass, where no flag says so."""


def flips(baseline: Results, variant: Results) -> list[dict[str, Any]]:
    """The subjects whose pass has changed, in the order of *baseline*.

    ``a`` and ``b`` say whether the subject passed in baseline and variant, ``score_a`` and ``score_b`` what it scored.
    """
    before, after = _judged(baseline), _judged(variant)
    return [
        {"subject_id": subject, "a": a, "b": after[subject][0], "score_a": score, "score_b": after[subject][1]}
        for subject, (a, score) in before.items()
        if subject in after and a is not None and after[subject][0] is not None and a != after[subject][0]
    ]


def _judged(results: Results) -> dict[str, tuple[bool | None, float | None]]:
    """Whether each subject passes, and its score; the newest record counts."""
    return {subject: (_passes(record), score_of(record)) for subject, record in results.records()}


def _passes(record: Record) -> bool | None:
    """Whether all flags of *record* are true, or without flags the score is a pass; None where there is neither."""
    flags = [bool(flag) for flag in mapping(record, FLAGS).values() if flag is not None]
    if flags:
        return all(flags)
    score = score_of(record)
    return None if score is None else score >= CUT
