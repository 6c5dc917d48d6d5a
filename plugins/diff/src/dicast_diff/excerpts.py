"""Short forms of values for details: one line, for values of any size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

LONGEST = 40
"""The number of characters of a text that are shown."""

_BEFORE = 10
_NAMES = {None: "null", True: "true", False: "false"}


def excerpt(value: object) -> str:
    """Return the beginning of *value*, in one line of ASCII and other printable characters."""
    if isinstance(value, str):
        return repr(value if len(value) <= LONGEST else f"{value[:LONGEST]}…")
    if isinstance(value, Mapping | list | tuple):
        return f"{'an object' if isinstance(value, Mapping) else 'a list'} of {len(value)}"
    if value is None or isinstance(value, bool):
        return _NAMES[value]
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python writes
        text = "a very long number"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def contrast(output: object, reference: object) -> str:
    """``OUTPUT, not REFERENCE``; of two long texts, the part where they begin to differ."""
    start = 0
    if isinstance(output, str) and isinstance(reference, str) and max(len(output), len(reference)) > LONGEST:
        start = max(0, first_difference(output, reference) - _BEFORE)
    return f"{_from(output, start)}, not {_from(reference, start)}"


def _from(value: object, start: int) -> str:
    return excerpt(f"…{value[start : start + LONGEST + 1]}") if start and isinstance(value, str) else excerpt(value)


def first_difference(left: Sequence[object], right: Sequence[object]) -> int:
    """Return the number of equal items at the beginning of both. It is computed by halving, so that C compares the items."""
    low, high = 0, min(len(left), len(right))
    if left[:high] == right[:high]:
        return high
    if left[:1] != right[:1]:
        return 0
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
