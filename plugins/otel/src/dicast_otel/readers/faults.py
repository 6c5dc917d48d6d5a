"""Checks of the types of a document's values."""

from __future__ import annotations

import re
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


def integer(value: object, path: str, times: int = 1) -> int | None:
    """Return an integer, which may be written as a text, multiplied by *times*; None if it is missing.

    :raises Malformed: if *value* is not an integer, or the result needs more than 64 bits.
    """
    if value is None or value == "":
        return None
    is_text = isinstance(value, str) and _INTEGER.fullmatch(value) is not None
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1
    if not is_text and not is_number:
        raise Malformed(f"this is an integer, not {value!r:.60}", path)
    number: int = int(value)  # type: ignore[call-overload]  # a text or a number
    if not _LEAST <= number * times <= _MOST:
        raise Malformed(f"the integer {value!s:.60} needs more than 64 bits", path)
    return number * times


_INTEGER = re.compile("-?[0-9]{1,40}")
_LEAST, _MOST = -(2**63), 2**63 - 1
