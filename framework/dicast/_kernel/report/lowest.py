"""The subjects of a run with the lowest scores."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence

WORST = 5
"""Subjects with the lowest scores in the document."""


class LowestScores:
    """The lowest scores with their subjects; of equal scores, the earlier."""

    def __init__(self) -> None:
        self._worst: list[tuple[float, int, str, str]] = []
        self._ranked = 0

    def add(self, subjects: Iterable[tuple[str | None, str | None]], scores: Sequence[float | None]) -> None:
        """Count *scores* of *subjects*, each a kind and an id."""
        worst = self._worst
        if (
            len(worst) == WORST
            and min([score for score in scores if score is not None], default=math.inf) >= -worst[0][0]
        ):
            self._ranked += len(scores)
            return
        for place, (subject, score) in enumerate(zip(subjects, scores, strict=True), self._ranked):
            if score is not None and (len(worst) < WORST or -score > worst[0][0]):
                kind, id_ = subject
                entry = (-score, -place, str(kind), str(id_))
                (heapq.heappush if len(worst) < WORST else heapq.heapreplace)(worst, entry)
        self._ranked += len(scores)

    def listed(self) -> list[dict[str, object]]:
        """Return the subjects, lowest first."""
        lowest = sorted(self._worst, reverse=True)
        return [{"subject_kind": kind, "subject_id": id_, "score": -score} for score, _, kind, id_ in lowest]
