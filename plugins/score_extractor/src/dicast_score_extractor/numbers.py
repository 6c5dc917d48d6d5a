"""Numbers in replies of models."""

from __future__ import annotations

import math
import re

_NUMBER = re.compile(r"\s*([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)\s*%?\s*")


def number(value: object) -> float | None:
    """Return *value* as a finite number, or None if it is not a number.

    True is 1 and false is 0. A text counts if it is a single number; a ``%`` after the number is ignored, so ``85%`` is 85. Other
    texts, NaN, infinity, lists and objects are not numbers.
    """
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value)
        value = float(match[1]) if match else None
    if not isinstance(value, int | float):
        return None
    try:
        result = float(value)
    except OverflowError:
        return None
    return result if math.isfinite(result) else None
