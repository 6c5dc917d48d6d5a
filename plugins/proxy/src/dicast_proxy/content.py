"""The texts in an output."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from dicast.toolkit.json_values import MISSING


def texts(value: object) -> list[str]:
    """Return the strings of *value*: a string itself, every string inside an object or list, any other scalar as JSON.

    None and a missing field have no strings. The function is iterative, so any depth of nesting works.
    """
    if isinstance(value, str):
        return [value]
    if value is None or value is MISSING:
        return []
    if not isinstance(value, Mapping | list | tuple):
        return [_scalar(value)]
    strings: list[str] = []
    left: list[object] = [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            strings.append(item)
        elif isinstance(item, Mapping | list | tuple):
            left.extend(reversed([*(item.values() if isinstance(item, Mapping) else item)]))
    return strings


def _scalar(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # an integer of more than 64 bits, or what is no JSON at all
        return str(value)
