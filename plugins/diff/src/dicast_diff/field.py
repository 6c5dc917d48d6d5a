"""The option ``field``: one place inside an output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import orjson

from dicast import MISSING, ConfigError, lookup


def check_field(_instance: object, _attribute: attrs.Attribute[str | None], field: str | None) -> None:
    """Refuse an empty ``field``.

    :raises ConfigError: when *field* is an empty string.
    """
    if field == "":
        raise ConfigError("field is empty; leave it out to take the whole output, or write a.b.0 or /a/b/0")


def locate(output: object, field: str) -> Any:
    """The value at *field* in *output*, or ``MISSING``: a dotted path (``a.0``) or a JSON pointer (``/a/0``, RFC 6901).

    An output that is text is read as JSON first; text that is no JSON has no fields.
    """
    value = _parse(output) if isinstance(output, str) else output
    return _follow(value, field) if field.startswith("/") else lookup(value, field)


def _follow(value: object, pointer: str) -> object:
    for token in pointer[1:].split("/"):
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping):
            value = value.get(key, MISSING)
        elif isinstance(value, list | tuple) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return MISSING
    return value


def _parse(text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return MISSING
