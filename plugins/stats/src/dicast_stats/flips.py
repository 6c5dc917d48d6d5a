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


def flips(baseline: Results, variant: Results) -> list[dict[str, Any]]:
    """The subjects whose pass has changed, in the order of *baseline*; the newest record of each counts.

    ``a`` and ``b`` say whether the subject passed in baseline and variant, ``score_a`` and ``score_b`` what it scored. Flags are
    compared by ``criterion``; of a subject that has none in both runs, the score is, cut at :data:`CUT`, and the criterion is null.
    """
    before, after = _passes(baseline), _passes(variant)
    return [
        {"subject_id": subject, **flip}
        for subject, ours in before.items()
        if subject in after
        for flip in _changed(ours, after[subject])
    ]


def _changed(ours: Passes, theirs: Passes) -> Iterator[dict[str, Any]]:
    flagged = [criterion for criterion in ours.flags if criterion in theirs.flags]
    for criterion in flagged:
        yield from _flip(
            criterion,
            (ours.flags[criterion], theirs.flags[criterion]),
            (ours.scores.get(criterion), theirs.scores.get(criterion)),
        )
    if not flagged and ours.score is not None and theirs.score is not None:
        yield from _flip(None, (ours.score >= CUT, theirs.score >= CUT), (ours.score, theirs.score))


def _flip(
    criterion: str | None, passes: tuple[bool, bool], scores: tuple[float | None, float | None]
) -> Iterator[dict[str, Any]]:
    if passes[0] is not passes[1]:
        yield {"a": passes[0], "b": passes[1], "criterion": criterion, "score_a": scores[0], "score_b": scores[1]}


def _passes(results: Results) -> dict[str, Passes]:
    return {subject: _known(record) for subject, record in results.records()}


def _known(record: Record) -> Passes:
    flags = {name: bool(flag) for name, flag in mapping(record, FLAGS).items() if flag is not None}
    scores = {name: number(score) for name, score in mapping(record, SCORES).items()} if flags else {}
    return Passes(flags, scores, score_of(record))
