"""Checks of the types of a document's values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class Malformed(Exception):
    """A value that the format of the document does not have at *path*."""

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message)
        self.message, self.path = message, path


def items(value: object, path: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the objects of a list with their numbers; null is an empty list.

    :raises Malformed: if *value* is not a list of objects.
    """
    if not value and (value is None or value == []):
        return
    if not isinstance(value, list):
        raise Malformed(f"this is a list, not {value!r:.60}", path)
    for number, item in enumerate(value):
        yield number, item if type(item) is dict else mapping(item, f"{path}[{number}]")


def mapping(value: object, path: str) -> Mapping[str, Any]:
    """Return *value*, which must be an object.

    :raises Malformed: if it is not an object.
    """
    if type(value) is not dict and not isinstance(value, Mapping):
        raise Malformed(f"this is an object, not {value!r:.60}", path)
    return value


def integer(value: object, path: str) -> int | None:
    """Return an integer, which may be written as a text; None if it is missing.

    :raises Malformed: if *value* is not an integer.
    """
    if value is None or value == "":
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.lstrip("-").isascii() and value.lstrip("-").isdigit() and len(value) <= _DIGITS:
        return int(value)
    raise Malformed(f"this is an integer, not {value!r:.60}", path)


_DIGITS = 20
