"""Pairs of equal calls and reference calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from .calls import Call

Equal = Callable[[int, int], bool]
"""Whether a call equals a reference call; the arguments are their places."""


@attrs.frozen
class Matching:
    """The places of each pair of a call and a reference call, in the order of the calls."""

    pairs: Sequence[tuple[int, int]]

    def calls(self) -> set[int]:
        """Return the places of the calls with a partner."""
        return {place for place, _ in self.pairs}

    def references(self) -> set[int]:
        """Return the places of the reference calls with a partner."""
        return {place for _, place in self.pairs}


def memoized(calls: Sequence[Call], references: Sequence[Call], equal: Callable[[Call, Call], bool]) -> Equal:
    """Return *equal* as a function of places that compares each pair only once."""
    results: dict[tuple[int, int], bool] = {}

    def by_place(place: int, reference: int) -> bool:
        key = (place, reference)
        if key not in results:
            results[key] = equal(calls[place], references[reference])
        return results[key]

    return by_place


def longest_common(count: int, references: int, equal: Equal) -> Matching:
    """Return a longest matching that keeps the order: a longest common subsequence."""
    lengths = [[0] * (references + 1) for _ in range(count + 1)]
    for place in reversed(range(count)):
        row, below = lengths[place], lengths[place + 1]
        for reference in reversed(range(references)):
            row[reference] = (
                below[reference + 1] + 1 if equal(place, reference) else max(below[reference], row[reference + 1])
            )
    pairs, place, reference = list[tuple[int, int]](), 0, 0
    while place < count and reference < references:
        if equal(place, reference):
            pairs.append((place, reference))
            place, reference = place + 1, reference + 1
        elif lengths[place + 1][reference] > lengths[place][reference + 1]:
            place += 1
        elif lengths[place + 1][reference] < lengths[place][reference + 1]:
            reference += 1
        else:
            place += 1
    return Matching(pairs)


def largest_matching(count: int, references: int, equal: Equal) -> Matching:
    """Return a largest matching in any order: a maximum matching of the bipartite graph, by augmenting paths (Kuhn)."""
    partner: dict[int, int] = {}  # the call of each reference
    for start in range(count):
        _augment(start, references, equal, partner)
    return Matching(sorted((place, reference) for reference, place in partner.items()))


def _augment(start: int, references: int, equal: Equal, partner: dict[int, int]) -> None:
    """Find a reference for the call at *start*, if other pairs can change for it. The search is breadth first, without recursion."""
    previous: dict[int, int] = {}  # the call from which each reference was reached
    waiting = [start]
    for place in waiting:
        for reference in range(references):
            if reference in previous or not equal(place, reference):
                continue
            previous[reference] = place
            if reference in partner:
                waiting.append(partner[reference])
                continue
            _shift(reference, start, previous, partner)
            return


def _shift(free: int, start: int, previous: dict[int, int], partner: dict[int, int]) -> None:
    reference = free
    reference_of = {place: reference for reference, place in partner.items()}
    while True:
        place = previous[reference]
        partner[reference] = place
        if place == start:
            return
        reference = reference_of[place]
