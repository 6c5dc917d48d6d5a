"""Which rows are in a page that has not room for all."""

from __future__ import annotations

from hashlib import blake2b
from heapq import heappush, heappushpop
from typing import Any

import attrs

from .marking import Marking
from .told import Key, Told

KEY = b"dicast report"
"""The key of the hash by which rows are drawn: the same subjects in every page, whatever the run."""


@attrs.frozen
class Chosen:
    """The rows that are shown, in the order of the run, of *total*: *unscored* and *worst* come first, the rest are *drawn*."""

    rows: tuple[Told, ...]
    total: int
    unscored: int
    worst: int
    drawn: int


class Choice:
    """Takes the subjects of a run and keeps *limit* of them: those without a score, then half of the room for the lowest scores,
    the rest drawn by a keyed hash of their kinds and ids. Memory holds three times *limit* subjects at most.
    """

    def __init__(self, limit: int, marking: Marking) -> None:
        self._limit, self._marking = limit, marking
        self._total = 0
        self._unscored: dict[Key, Told] = {}
        self._worst: list[tuple[float, int, Told]] = []
        self._drawn: list[tuple[int, int, Told]] = []

    def add(self, told: Told) -> list[tuple[str, str]]:
        """Take a subject, and return the failures that no longer hold: of one that failed before and is judged again now."""
        overtaken: list[tuple[str, str]] = []
        earlier = self._unscored.get(told.key)
        if earlier is not None:
            overtaken = [one for one in earlier.failures() if one[0] in told.ended or told.record is not None]
            earlier.merge(told)
            told = earlier
        else:
            self._total += 1
            _keep(self._drawn, (-_drawn_by(told), -told.place, told), self._limit)
        if self._marking.outcome(told) == "none":
            if len(self._unscored) < self._limit:
                self._unscored[told.key] = told
            return overtaken
        self._unscored.pop(told.key, None)
        score = self._marking.score(told)
        _keep(self._worst, (-2.0 if score is None else -score, -told.place, told), self._limit)
        return overtaken

    def chosen(self) -> Chosen:
        """What is shown."""
        if self._total <= self._limit:
            rows = [told for _, _, told in self._drawn]
            return Chosen(_in_order(rows), self._total, len(self._unscored), 0, 0)
        unscored = list(self._unscored.values())
        room = self._limit - len(unscored)
        worst = [told for _, _, told in sorted(self._worst, key=lambda one: one[:2], reverse=True)[: room // 2]]
        taken = {told.key for told in (*unscored, *worst)}
        others = sorted((one for one in self._drawn if one[2].key not in taken), key=lambda one: one[:2], reverse=True)
        drawn = [told for _, _, told in others[: room - len(worst)]]
        return Chosen(_in_order([*unscored, *worst, *drawn]), self._total, len(unscored), len(worst), len(drawn))


def _keep(heap: list[Any], item: tuple[float, int, Told], most: int) -> None:
    """Put *item* into *heap*, which keeps the *most* that are greatest; places differ, so that subjects are never compared."""
    if len(heap) < most:
        heappush(heap, item)
    elif most:
        heappushpop(heap, item)


def _in_order(rows: list[Told]) -> tuple[Told, ...]:
    return tuple(sorted(rows, key=lambda told: told.place))


def _drawn_by(told: Told) -> int:
    return int.from_bytes(blake2b(f"{told.kind}/{told.id}".encode(), digest_size=8, key=KEY).digest(), "big")
