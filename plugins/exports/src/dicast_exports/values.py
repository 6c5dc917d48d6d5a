"""Small readings of JSON values, shared by the formats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from dicast.toolkit.media import without_content

Value = Mapping[str, Any]


def mapping(value: object) -> dict[str, Any]:
    """Return *value* if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[dict[str, Any]]:
    """Return the objects in the list *value*."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(value: object) -> str | None:
    """Return *value* if it is a text with letters, else None."""
    return value if isinstance(value, str) and value.strip() else None


def first(value: Value, *keys: str) -> Any:
    """Return the value of the first of *keys* that has one."""
    return next((value[key] for key in keys if value.get(key) is not None), None)


def single(value: object) -> object:
    """Return the text of an object that has one text and nothing else; any other value as it is."""
    if isinstance(value, dict) and len(value) == 1:
        (only,) = value.values()
        if isinstance(only, str):
            return only
    return value


def decoded(value: object) -> object:
    """Return the JSON value in the text *value*; the text itself if it is none."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return value


def as_text(value: object) -> str:
    """Return a text as it is, and another value as JSON, with markers in place of its media."""
    return value if isinstance(value, str) else orjson.dumps(without_content(value), default=str).decode()


def message_of(error: object) -> str:
    """Return the message of an error of any shape."""
    if isinstance(error, dict):
        inner = first(error, "message", "error_message", "error", "detail", "code")
        return message_of(inner) if inner is not None else orjson.dumps(error).decode()
    return str(error)
