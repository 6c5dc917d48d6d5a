"""Looking into JSON values: what stands at a place in one, and how deep it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import orjson

from .errors import ConfigError

MISSING: Any = type("Missing", (), {})()
"""What :func:`lookup` and :func:`locate` give where there is no value; null is a value."""

MAX_DEPTH = 200
"""How many objects and lists may stand inside each other in what is read."""

_WRITABLE = 254  # orjson reads 1,024 levels, and writes these


def lookup(value: object, path: str) -> Any:
    """The value at the dotted *path* (``meta.tags.0``) in *value*, or :data:`MISSING`.

    A key that is spelled like the whole path comes before the path taken apart.
    """
    if isinstance(value, Mapping) and path in value:
        return value[path]
    return _follow(value, path.split("."))


def locate(output: object, field: str) -> Any:
    """The value at *field* in *output*, or :data:`MISSING`: a dotted path (``a.0``) or a JSON pointer (``/a/0``, RFC 6901).

    An output that is text is read as JSON first; text that is no JSON has no fields.
    """
    value = _parse(output) if isinstance(output, str) else output
    if not field.startswith("/"):
        return lookup(value, field)
    return _follow(value, [step.replace("~1", "/").replace("~0", "~") for step in field[1:].split("/")])


def too_deep(text: bytes, value: object) -> bool:
    """True when *value*, which *text* is the JSON of, is nested deeper than :data:`MAX_DEPTH`.

    What is judged is recorded inside an event and its parts, so less than what can be written may be read.
    """
    if text.count(b"[") + text.count(b"{") <= MAX_DEPTH:  # so with nearly every text; counting is quick
        return False
    for _ in range(_WRITABLE - MAX_DEPTH):
        value = [value]
    try:
        orjson.dumps(value)
    except TypeError:
        return True
    return False


def check_field(_instance: object, _attribute: attrs.Attribute[str | None], field: str | None) -> None:
    """An attrs validator for an option that :func:`locate` follows; None stands for the whole output.

    :raises ConfigError: when *field* is an empty string.
    """
    if field == "":
        raise ConfigError("field is empty; leave it out to take the whole output, or write a.b.0 or /a/b/0")


def _follow(value: object, steps: list[str]) -> Any:
    for step in steps:
        if isinstance(value, Mapping):
            value = value.get(step, MISSING)
        elif isinstance(value, list | tuple) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return MISSING
    return value


def _parse(text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return MISSING
