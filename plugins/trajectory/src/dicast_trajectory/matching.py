"""Which calls of a subject are which reference calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from .calls import Call

Equal = Callable[[int, int], bool]
"""Whether the call at the first place is the reference call at the second."""


@attrs.frozen
class Matching:
    """Pairs of a call and a reference call by their places, in the order of the calls."""

    pairs: Sequence[tuple[int, int]]

    def calls(self) -> set[int]:
        """Return the places of the calls with a partner."""
        return {place for place, _ in self.pairs}

    def references(self) -> set[int]:
        """Return the places of the reference calls with a partner."""
        return {place for _, place in self.pairs}


def memoized(calls: Sequence[Call], references: Sequence[Call], equal: Callable[[Call, Call], bool]) -> Equal:
    """Return *equal* by places, so that each pair is compared once."""
    known: dict[tuple[int, int], bool] = {}

    def by_place(place: int, reference: int) -> bool:
        key = (place, reference)
        if key not in known:
            known[key] = equal(calls[place], references[reference])
        return known[key]

    return by_place


def longest_common(count: int, references: int, equal: Equal) -> Matching:
    """Return a longest matching that keeps the order (longest common subsequence); the earliest calls of all such are taken."""
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
    partner: dict[int, int] = {}  # of each reference
    for start in range(count):
        _augment(start, references, equal, partner)
    return Matching(sorted((place, reference) for reference, place in partner.items()))


def _augment(start: int, references: int, equal: Equal, partner: dict[int, int]) -> None:
    """Give the call at *start* a reference, if others can move; breadth first, so that long chains need no recursion."""
    previous: dict[int, int] = {}  # the call by which each reference was reached
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
