"""The longest common subsequence of two sequences."""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def lcs_length(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Return the number of items in the longest common subsequence of *first* and *second*.

    Bit-parallel (H. Hyyrö, "Bit-parallel LCS-length computation revisited", 2004): a column of the dynamic program is
    the bits of one integer, so the inner loop is integer arithmetic. Time grows with len(first)·len(second)/30; a timer
    can end it between two items.
    """
    shorter, longer = sorted((first, second), key=len)  # the integers are as long as the shorter one
    places: dict[Hashable, int] = {}
    for index, item in enumerate(shorter):
        places[item] = places.get(item, 0) | 1 << index
    column = all_ones = (1 << len(shorter)) - 1
    for item in filter(places.__contains__, longer):
        matches = column & places[item]
        column = ((column + matches) | (column - matches)) & all_ones
    return len(shorter) - column.bit_count()
