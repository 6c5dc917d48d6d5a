"""Selection of rows for a page that cannot hold all rows of a run."""

from __future__ import annotations

from hashlib import blake2b
from heapq import heappush, heappushpop
from typing import Any

import attrs

from .marking import Marking
from .subjects import Key, SubjectResults

KEY = b"dicast report"
"""Key of the hash that draws rows. It is fixed, so that every page of any run draws the same subjects."""


@attrs.frozen
class Chosen:
    """Rows of a page, in the order of the run, out of *total* rows: the numbers of *unscored*, *worst* and randomly *drawn* rows."""

    rows: tuple[SubjectResults, ...]
    total: int
    unscored: int
    worst: int
    drawn: int


class Choice:
    """Chooser of at most *limit* subjects of a run.

    Subjects without a score come first. The lowest scores get half of the remaining rows. The other rows are drawn by a keyed hash of kind and id.
    It keeps at most three times *limit* subjects in memory.
    """

    def __init__(self, limit: int, marking: Marking) -> None:
        self._limit, self._marking = limit, marking
        self._total = 0
        self._unscored: dict[Key, SubjectResults] = {}
        self._worst: list[tuple[float, int, SubjectResults]] = []
        self._drawn: list[tuple[int, int, SubjectResults]] = []

    def add(self, subject: SubjectResults) -> list[tuple[str, str]]:
        """Add a subject. Return the failures that no longer count because the subject failed before and is now judged again."""
        overtaken: list[tuple[str, str]] = []
        earlier = self._unscored.get(subject.key)
        if earlier is not None:
            overtaken = [
                failure for failure in earlier.failures() if failure[0] in subject.results or subject.record is not None
            ]
            earlier.merge(subject)
            subject = earlier
        else:
            self._total += 1
            _keep(self._drawn, (-_drawn_by(subject), -subject.place, subject), self._limit)
        if self._marking.outcome(subject) == "none":
            if len(self._unscored) < self._limit:
                self._unscored[subject.key] = subject
            return overtaken
        self._unscored.pop(subject.key, None)
        score = self._marking.score(subject)
        _keep(self._worst, (-2.0 if score is None else -score, -subject.place, subject), self._limit)
        return overtaken

    def chosen(self) -> Chosen:
        """Return the chosen rows."""
        if self._total <= self._limit:
            rows = [subject for _, _, subject in self._drawn]
            return Chosen(_in_order(rows), self._total, len(self._unscored), 0, 0)
        unscored = list(self._unscored.values())
        room = self._limit - len(unscored)
        worst = [subject for _, _, subject in sorted(self._worst, key=lambda item: item[:2], reverse=True)[: room // 2]]
        chosen_keys = {subject.key for subject in (*unscored, *worst)}
        other_rows = sorted(
            (item for item in self._drawn if item[2].key not in chosen_keys), key=lambda item: item[:2], reverse=True
        )
        drawn = [subject for _, _, subject in other_rows[: room - len(worst)]]
        return Chosen(_in_order([*unscored, *worst, *drawn]), self._total, len(unscored), len(worst), len(drawn))


def _keep(heap: list[Any], item: tuple[float, int, SubjectResults], most: int) -> None:
    """Push *item* to *heap*, which keeps the *most* greatest items. Places differ, so that subjects are never compared."""
    if len(heap) < most:
        heappush(heap, item)
    elif most:
        heappushpop(heap, item)


def _in_order(rows: list[SubjectResults]) -> tuple[SubjectResults, ...]:
    return tuple(sorted(rows, key=lambda subject: subject.place))


def _drawn_by(subject: SubjectResults) -> int:
    return int.from_bytes(blake2b(f"{subject.kind}/{subject.id}".encode(), digest_size=8, key=KEY).digest(), "big")
