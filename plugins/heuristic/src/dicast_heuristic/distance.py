"""Distance between two texts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

_PIECE, _ANCHOR, _SPAN = 5, 12, 500  # letters

_GRAM, _SHORT = 3, 2_000
"""Letters of the pieces that short texts are compared by, and the most letters of a short text."""


def within(left: str, right: str, most: float) -> bool:
    """Return whether the Levenshtein distance of two texts is at most the share *most* of the longer text's length."""
    if left == right:
        return True
    longer = max(len(left), len(right))
    limit = int(most * longer)
    limit += (limit + 1) / longer <= most  # corrects a rounding error
    if abs(len(left) - len(right)) > limit:
        return False
    if longer <= _SHORT and len(_grams(left) - _grams(right)) > _GRAM * limit:  # an edit changes at most so many pieces
        return False
    left, right = _differing(left, right)
    if max(len(left), len(right)) <= limit:
        return True
    if _edits(left, right, limit) <= limit:
        return True
    return not _is_other(left, right, limit) and _is_near(left, right, limit)


@lru_cache(maxsize=64)
def _grams(text: str) -> frozenset[tuple[str, ...]]:
    """Return all pieces of a text. A call is compared with the calls before and after it, so the newest results are kept."""
    return frozenset(zip(*[text[start:] for start in range(_GRAM)], strict=False))


def _edits(left: str, right: str, limit: int) -> int:
    """Return an upper bound of the edits from *left* to *right*, which is fast and close for few, distant edits.

    After an edit, the comparison continues at the next common letters nearby. Counting ends above *limit*.
    """
    edits = 0
    while left and right and edits <= limit:
        shared = _shared(left, right)
        left, right = left[shared:], right[shared:]
        for skipped in range(min(len(left), limit) + 1):
            place = right.find(left[skipped : skipped + _ANCHOR], 0, skipped + _SPAN)
            if place >= 0:
                break
        else:
            break
        edits += max(skipped, place)
        left, right = left[skipped:], right[place:]
    return edits + max(len(left), len(right))


def _is_near(left: str, right: str, limit: int) -> bool:
    """Return whether the Levenshtein distance of two texts is at most *limit*.

    A text is longer than *limit*, and the lengths differ by at most *limit*. A column of the table is stored as the bits of two
    numbers (Myers 1999), and only in the rows that *limit* edits can reach (Hyyrö 2003, "A bit-vector algorithm for computing
    Levenshtein and Damerau edit distances").
    """
    if len(left) < len(right):
        left, right = right, left
    ends = len(left) - limit  # the column in which the last row of the band is the last row of the table
    every, edge = (1 << 2 * limit + 1) - 1, 1 << 2 * limit
    # rows in which the column rises, rows in which it falls, and its value at the edge
    up, down, distance = every >> limit << limit, 0, limit
    for column, band in enumerate(_bands(left, right, limit), 1):
        level = ((((band & up) + up) ^ up) | band | down) & every  # rows in which the diagonal does not rise
        rises, falls = down | (every ^ (level | up)), level & up
        if column <= ends:
            distance += not level & edge
        else:
            edge >>= 1
            distance += bool(rises & edge) - bool(falls & edge)
        if distance > limit + len(right) - max(column, ends):  # the last row may fall by one in each column
            return False
        level >>= 1
        up, down = falls | (every ^ (level | rises)), level & rises
    return distance <= limit


def _bands(left: str, right: str, limit: int) -> Iterator[int]:
    """Yield for each letter of *right* the rows of *left* with this letter, as ``2 * limit + 1`` bits around the diagonal."""
    width = 2 * limit + 1
    every = (1 << width) - 1
    for start in range(0, len(right), width):
        first = start - limit
        places: dict[str, int] = {}
        for row in range(max(first, 0), min(first + 2 * width, len(left))):
            places[left[row]] = places.get(left[row], 0) | 1 << row - first
        for shift, letter in enumerate(right[start : start + width]):
            yield places.get(letter, 0) >> shift & every


def _is_other(left: str, right: str, limit: int) -> bool:
    """Return whether more than *limit* pieces of *left* are missing in *right*. An edit changes at most a single piece."""
    pieces = range(0, len(left) - _PIECE + 1, _PIECE)
    if len(pieces) <= limit:
        return False
    present = {right[start : start + _PIECE] for start in range(len(right) - _PIECE + 1)}
    return len(pieces) - sum(map(present.__contains__, [left[start : start + _PIECE] for start in pieces])) > limit


def _differing(left: str, right: str) -> tuple[str, str]:
    """Return the texts without their common start and end."""
    start = _shared(left, right)
    left, right = left[start:], right[start:]
    end = _shared(left[::-1], right[::-1])
    return left[: len(left) - end], right[: len(right) - end]


def _shared(left: str, right: str) -> int:
    """Return the length of the common start."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left.startswith(right[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low
