"""How far two texts are from each other."""

from __future__ import annotations

from collections import Counter


def within(left: str, right: str, most: float) -> bool:
    """Whether the Levenshtein distance of two texts is at most the share *most* of the longer one's length."""
    longer = max(len(left), len(right))
    if left == right or not longer:
        return True
    limit = int(most * longer)
    limit += (limit + 1) / longer <= most  # what rounding may have lost
    left, right = _differing(left, right)
    if max(len(left), len(right)) <= limit:
        return True
    more, less = Counter(left), Counter(right)
    if max((more - less).total(), (less - more).total()) > limit:  # so many letters at least have to change
        return False
    return distance(left, right) <= limit


def distance(left: str, right: str) -> int:
    """The Levenshtein distance, a column of the table as the bits of a number (Myers 1999, in Hyyrö's form of 2003)."""
    if not left:
        return len(right)
    places: dict[str, int] = {}
    for row, letter in enumerate(left):
        places[letter] = places.get(letter, 0) | 1 << row
    every, last = (1 << len(left)) - 1, 1 << (len(left) - 1)
    up, down, found = every, 0, len(left)  # where the column rises, where it falls, its last value
    for letter in right:
        same = places.get(letter, 0)
        flat = same | down
        across = (((same & up) + up) ^ up) | same
        rises, falls = down | (every & ~(across | up)), up & across
        found += bool(rises & last) - bool(falls & last)
        rises, falls = (rises << 1 | 1) & every, (falls << 1) & every
        up, down = falls | (every & ~(flat | rises)), rises & flat
    return found


def _differing(left: str, right: str) -> tuple[str, str]:
    """The texts without the start and the end that they share."""
    start = _shared(left, right)
    left, right = left[start:], right[start:]
    end = _shared(left[::-1], right[::-1])
    return left[: len(left) - end], right[: len(right) - end]


def _shared(left: str, right: str) -> int:
    """How many letters are the same from the start on."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(left), len(right)))
