"""The subjects of a run with the lowest scores."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterable, Sequence

WORST = 5
"""Subjects with the lowest scores in the document."""


class LowestScores:
    """The lowest scores with their subjects; of equal scores, the shorter id, then the first id as text.

    The order of the judgments has no effect: a retried run, or a run with other concurrency, lists the same subjects.
    """

    def __init__(self) -> None:
        self._worst: list[tuple[float, int, str, str]] = []

    def add(self, subjects: Iterable[tuple[str | None, str | None]], scores: Sequence[float | None]) -> None:
        """Count *scores* of *subjects*, each a kind and an id."""
        worst = self._worst
        limit = worst[-1][0] if len(worst) == WORST else math.inf
        if min([score for score in scores if score is not None], default=math.inf) > limit:
            return
        for (kind, id_), score in zip(subjects, scores, strict=True):
            if score is None or score > limit:
                continue
            insort(worst, (score, len(str(id_)), str(id_), str(kind)))
            if len(worst) >= WORST:
                del worst[WORST:]
                limit = worst[-1][0]

    def listed(self) -> list[dict[str, object]]:
        """Return the subjects, lowest first."""
        return [{"subject_kind": kind, "subject_id": id_, "score": score} for score, _, id_, kind in self._worst]
