"""Subjects that pass in one run and not in another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from dicast import Record, Results

from .table import FLAGS, SCORES
from .values import mapping, number, score_of

CUT = 0.5
"""A score from here on is a pass, where no flag says so."""


class Passes(NamedTuple):
    """What is known of a subject in a run: flags and scores by criterion, and its one score. (Made by the million.)"""

    flags: dict[str, bool]
    scores: dict[str, float | None]
    score: float | None


def flips(baseline: Results, variant: Results) -> tuple[list[dict[str, Any]], int]:
    """The subjects whose pass has changed, in the order of *baseline*, and of how many that is known; the newest record counts.

    ``a`` and ``b`` say whether the subject passed in baseline and variant, ``score_a`` and ``score_b`` what it scored. Flags are
    compared by ``criterion``; of a subject that has none in both runs, the score is, cut at :data:`CUT`, and the criterion is null.
    """
    before, after = _passes(baseline), _passes(variant)
    found, known = list[dict[str, Any]](), 0
    for subject, ours in before.items():
        both = list(_both(ours, after[subject])) if subject in after else []
        known += bool(both)
        found += [{"subject_id": subject, **one} for one in both if one["a"] is not one["b"]]
    return found, known


def _both(ours: Passes, theirs: Passes) -> Iterator[dict[str, Any]]:
    """What is known of a subject in both runs."""
    flagged = [criterion for criterion in ours.flags if criterion in theirs.flags]
    for criterion in flagged:
        scores = (ours.scores.get(criterion), theirs.scores.get(criterion))
        yield _pair(criterion, (ours.flags[criterion], theirs.flags[criterion]), scores)
    if not flagged and ours.score is not None and theirs.score is not None:
        yield _pair(None, (ours.score >= CUT, theirs.score >= CUT), (ours.score, theirs.score))


def _pair(
    criterion: str | None, passes: tuple[bool, bool], scores: tuple[float | None, float | None]
) -> dict[str, Any]:
    return {"a": passes[0], "b": passes[1], "criterion": criterion, "score_a": scores[0], "score_b": scores[1]}


def _passes(results: Results) -> dict[str, Passes]:
    return {subject: _known(record) for subject, record in results.records()}


def _known(record: Record) -> Passes:
    flags = {name: bool(flag) for name, flag in mapping(record, FLAGS).items() if flag is not None}
    scores = {name: number(score) for name, score in mapping(record, SCORES).items()} if flags else {}
    return Passes(flags, scores, score_of(record))
