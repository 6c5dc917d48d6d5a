"""How far two texts are from each other."""

from __future__ import annotations

from collections.abc import Iterator

_PIECE, _ANCHOR, _SPAN = 5, 12, 500  # letters


def within(left: str, right: str, most: float) -> bool:
    """Whether the Levenshtein distance of two texts is at most the share *most* of the longer one's length."""
    if left == right:
        return True
    longer = max(len(left), len(right))
    limit = int(most * longer)
    limit += (limit + 1) / longer <= most  # what rounding may have lost
    if abs(len(left) - len(right)) > limit:
        return False
    left, right = _differing(left, right)
    if max(len(left), len(right)) <= limit:
        return True
    if _edits(left, right, limit) <= limit:
        return True
    return not _is_other(left, right, limit) and _is_near(left, right, limit)


def _edits(left: str, right: str, limit: int) -> int:
    """How many edits lead from *left* to *right* at most, found in a moment where they are few and stand apart.

    After an edit the texts go on together at the first letters that can be found again nearby. Counting ends above *limit*.
    """
    edits = 0
    while left and right and edits <= limit:
        same = _shared(left, right)
        left, right = left[same:], right[same:]
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
    """Whether the Levenshtein distance of two texts is at most *limit*; one is longer than that, the other by no more shorter.

    A column of the table is the bits of two numbers (Myers 1999); of its rows only those are kept that so few edits can reach
    (Hyyrö 2003, "A bit-vector algorithm for computing Levenshtein and Damerau edit distances").
    """
    if len(left) < len(right):
        left, right = right, left
    ends = len(left) - limit  # the column in which the band's last row is the table's last one
    every, edge = (1 << 2 * limit + 1) - 1, 1 << 2 * limit
    up, down, found = every >> limit << limit, 0, limit  # where the column rises, where it falls; its value at the edge
    for column, same in enumerate(_bands(left, right, limit), 1):
        level = ((((same & up) + up) ^ up) | same | down) & every  # where the diagonal does not rise
        rises, falls = down | (every ^ (level | up)), level & up
        if column <= ends:
            found += not level & edge
        else:
            edge >>= 1
            found += bool(rises & edge) - bool(falls & edge)
        if found > limit + len(right) - max(column, ends):  # in the last row it may fall by one a column
            return False
        level >>= 1
        up, down = falls | (every ^ (level | rises)), level & rises
    return found <= limit


def _bands(left: str, right: str, limit: int) -> Iterator[int]:
    """For each letter of *right*, which of the ``2 * limit + 1`` rows around its diagonal have it in *left*, as bits."""
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
    """Whether more than *limit* pieces of *left* are nowhere in *right*: one edit changes one of them at most."""
    pieces = range(0, len(left) - _PIECE + 1, _PIECE)
    if len(pieces) <= limit:
        return False
    known = {right[start : start + _PIECE] for start in range(len(right) - _PIECE + 1)}
    return len(pieces) - sum(map(known.__contains__, [left[start : start + _PIECE] for start in pieces])) > limit


def _differing(left: str, right: str) -> tuple[str, str]:
    """The texts without the start and the end that they share."""
    start = _shared(left, right)
    left, right = left[start:], right[start:]
    end = _shared(left[::-1], right[::-1])
    return left[: len(left) - end], right[: len(right) - end]


def _shared(left: str, right: str) -> int:
    """How many letters are the same from the start on."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left.startswith(right[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low
