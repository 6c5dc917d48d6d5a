"""The test of whether the remaining judges of a jury can change its outcome."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from statistics import median
from typing import Literal

Combine = Literal["mean", "median", "majority", "weighted"]
Scored = tuple[Fraction, Fraction]
"""A juror's score and its weight."""

PASS = Fraction(1, 2)
"""The least score of a vote for the subject, in a majority."""


def combined(combine: Combine, votes: Sequence[Scored]) -> Fraction:
    """Return the score of *votes*, at least one, in exact arithmetic, so that it does not depend on the order."""
    if combine == "majority":
        passed = Fraction(sum(score >= PASS for score, _ in votes), len(votes))
        return Fraction((passed > PASS) + (passed >= PASS), 2)
    if combine == "median":
        return median(score for score, _ in votes)
    return mean(votes)


def mean(weighted: Sequence[Scored]) -> Fraction:
    """Return the mean of values by their weights."""
    return sum((value * weight for value, weight in weighted), Fraction()) / sum(weight for _, weight in weighted)


def settled(combine: Combine, votes: Sequence[Scored], left: Sequence[Fraction], failed: int, line: Fraction) -> bool:
    """Return True if the outcome is settled for any answers of the judges with the weights *left*, each a vote or a failure.

    The outcome of a majority is its score, otherwise the side of *line* that the score lies on. It needs the votes of more than half of
    all judges, so that failures of the remaining judges cannot undo the verdict. If so many judges have *failed* that no
    verdict is possible, the outcome is settled too.
    """
    judges = len(votes) + len(left) + failed
    if 2 * (len(votes) + len(left)) <= judges:
        return True
    if 2 * len(votes) <= judges:
        return False
    ends = [combined(combine, [*votes, *((Fraction(end), weight) for weight in left)]) for end in (0, 1)]
    if combine == "majority":
        return ends[0] == ends[1]
    return (ends[0] >= line) == (ends[1] >= line)
