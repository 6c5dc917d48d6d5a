"""The content of a reply as text, and as a number."""

from __future__ import annotations

import math
import re

import orjson

_INTEGER = re.compile(r"[-+]?[0-9]{1,15}")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def as_text(content: object) -> str:
    """*content* as text: text as it is, any other value as compact JSON."""
    if isinstance(content, str):
        return content
    return "" if content is None else orjson.dumps(content).decode()


def as_number(text: str) -> float | str:
    """Return the finite number of *text*, or the text if it is no number."""
    bare = text.strip()
    if _INTEGER.fullmatch(bare):
        return int(bare)
    if _NUMBER.fullmatch(bare) and math.isfinite(number := float(bare)):
        return number
    return text
