"""Helpers of all formats to read JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from dicast.toolkit.media import without_content

Value = Mapping[str, Any]


def mapping(value: object) -> dict[str, Any]:
    """Return *value* if it is an object, else an empty object."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[dict[str, Any]]:
    """Return the objects in the list *value*."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(value: object) -> str | None:
    """Return *value* if it is a text that is not blank, else None."""
    return value if isinstance(value, str) and value.strip() else None


def first(value: Value, *keys: str) -> Any:
    """Return the value of the first of *keys* with a value other than null."""
    return next((value[key] for key in keys if value.get(key) is not None), None)


def single(value: object) -> object:
    """Return the text in an object with one key and a text as its value; return any other value unchanged."""
    if isinstance(value, dict) and len(value) == 1:
        (only,) = value.values()
        if isinstance(only, str):
            return only
    return value


def decoded(value: object) -> object:
    """Return the JSON value in the text *value*; return *value* unchanged if it is not JSON."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return value


def as_text(value: object) -> str:
    """Return a text unchanged, and any other value as JSON, with markers in place of media."""
    return value if isinstance(value, str) else orjson.dumps(without_content(value), default=str).decode()


def message_of(error: object) -> str:
    """Return the message of an error: a text, or an object with the message under one of several keys."""
    if isinstance(error, dict):
        inner = first(error, "message", "error_message", "error", "detail", "code")
        return message_of(inner) if inner is not None else orjson.dumps(error).decode()
    return str(error)
