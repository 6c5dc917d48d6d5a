"""Reading a number out of whatever a reply has in its place."""

from __future__ import annotations

import math
import re

_NUMBER = re.compile(r"\s*([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)\s*%?\s*")


def number(value: object) -> float | None:
    """*value* as a finite number: numbers as they are, true 1 and false 0, and text that is one number and nothing else.

    A ``%`` after it is left out, so ``85%`` is 85. None is what is no number: other text, NaN, infinity, lists and objects.
    """
    if isinstance(value, str):
        found = _NUMBER.fullmatch(value)
        value = float(found[1]) if found else None
    if not isinstance(value, int | float):
        return None
    try:
        result = float(value)
    except OverflowError:
        return None
    return result if math.isfinite(result) else None
