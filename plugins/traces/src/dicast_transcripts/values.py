"""Reads values of JSON records by type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Record = Mapping[str, Any]


def text_of(record: Record, *keys: str) -> str | None:
    """Return the first value at *keys* that is a text and not empty."""
    for key in keys:
        value = record.get(key)
        if isinstance(value, str) and value:
            return value
    return None


def word_of(record: Record, key: str) -> str | None:
    """Return the text at *key*, such as a type or a role, or None for any other value."""
    value = record.get(key)
    return value if isinstance(value, str) else None


def id_of(record: Record, key: str) -> str | int | None:
    """Return the text or the integer at *key*, or None for any other value."""
    value = record.get(key)
    return value if isinstance(value, str | int) else None


def mapping_of(record: Record, key: str) -> Record:
    """Return the object at *key*, or an empty object for any other value."""
    value = record.get(key)
    return value if isinstance(value, dict) else {}


def list_of(record: Record, key: str) -> list[Any]:
    """Return the list at *key*, or an empty list for any other value."""
    value = record.get(key)
    return value if isinstance(value, list) else []


def objects_of(record: Record, key: str) -> list[Record]:
    """Return the objects in the list at *key*."""
    return [item for item in list_of(record, key) if isinstance(item, dict)]
