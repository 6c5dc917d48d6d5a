"""Reading of JSON values: the value at a path, and the depth of a value."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from math import isfinite
from typing import Any

import attrs
import orjson

from .._kernel.values.errors import ConfigError

MISSING: Any = type("Missing", (), {})()
"""Result of :func:`lookup` and :func:`locate` if there is no value; null is a value."""

MAX_DEPTH = 200
"""The deepest nesting of objects and lists that is read."""

_WRITABLE = 254  # orjson reads 1,024 levels, and writes these
_ANY_DIGIT = bytes.maketrans(b"0123456789", b"0" * 10)
_LONG = b"0" * 19  # an integer of so many digits may need more than 64 bits
_MOST = b"9223372036854775807"
_BEFORE, _AFTER = frozenset(b'":, \t\r\n['), frozenset(b'",}] \t\r\n')
_NUMBER = re.compile(r"\s*[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\s*")
"""A text that is a number, as statistics read it."""
_SHOWN_DIGITS = 40
_EXACT_DIGITS = 17
"""The most significant digits that a double keeps."""


def lookup(value: object, path: str) -> Any:
    """Return the value at the dotted *path* (``meta.tags.0``) in *value*, or :data:`MISSING`.

    A key that equals the whole path takes precedence over the path's parts.
    """
    if isinstance(value, Mapping) and path in value:
        return value[path]
    return _follow(value, path.split("."))


def locate(output: object, field: str) -> Any:
    """Return the value at *field* in *output*, or :data:`MISSING`: a dotted path (``a.0``) or a JSON pointer (``/a/0``, RFC 6901).

    An output that is text is read as JSON first; text that is no JSON has no fields.
    """
    value = _parse(output) if isinstance(output, str) else output
    if not field.startswith("/"):
        return lookup(value, field)
    return _follow(value, [step.replace("~1", "/").replace("~0", "~") for step in field[1:].split("/")])


def too_deep(text: bytes, value: object) -> bool:
    """Return True if *value*, whose JSON is *text*, is nested deeper than :data:`MAX_DEPTH`.

    Judged values are recorded inside an event, so the limit is lower than the depth that can be written.
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


def read_json(text: str | bytes) -> Any:
    """Return the value of the JSON *text*, with integers of any length exact; numbers with a fraction or an exponent are doubles.

    orjson alone reads an integer of more than 64 bits as a double, so that two of them may become one.

    :raises orjson.JSONDecodeError: if it is not JSON; also for an integer of more digits than Python reads.
    """
    value = orjson.loads(text)
    if not _may_be_long(text if isinstance(text, bytes) else text.encode()):  # so with nearly every text; it is quick
        return value
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise orjson.JSONDecodeError(f"it cannot be read exactly: {error}", str(text), 0) from error


def inexact(text: bytes) -> str | None:
    """Return the first number in the JSON *text* that cannot be recorded exactly, None if there is none.

    It is an integer of more than 64 bits, or a number with a fraction that differs from its double.
    """
    if not _may_be_long(text):
        return None
    integers, fractions = list[str](), list[str]()
    json.loads(text, parse_int=integers.append, parse_float=fractions.append)
    return next(iter((*filter(_is_wide, integers), *filter(_is_rounded, fractions))), None)


def is_inexact(digits: str) -> bool:
    """Return True if the JSON number *digits* cannot be recorded exactly (see :func:`inexact`)."""
    is_integer = digits.lstrip("+-").isdecimal()
    return len(digits) >= len(_LONG) and (_is_wide if is_integer else _is_rounded)(digits)


def marked_numbers(
    text: str | bytes, mark: Callable[[str], object], constant: Callable[[str], object] | None = None
) -> Any:
    """Return the value of the JSON *text*. A number that cannot be recorded exactly is replaced by the result of *mark* for its digits.

    With *constant*, a name such as ``NaN``, which is not JSON, is replaced by the result of *constant* for the name.
    """
    return json.loads(
        text,
        parse_constant=constant,
        parse_int=lambda digits: mark(digits) if is_inexact(digits) else int(digits),
        parse_float=lambda digits: mark(digits) if is_inexact(digits) else float(digits),
    )


def has_constants(line: bytes) -> bool:
    """Return whether *line* is JSON but for the constants NaN and infinity, as Python writes them."""
    try:
        return (b"NaN" in line or b"Infinity" in line) and bool(json.loads(line, parse_int=str, parse_float=str))
    except (ValueError, RecursionError):
        return False


def inexact_message(digits: str) -> str:
    """Return the message about a number that cannot be recorded exactly, for every format."""
    excerpt = digits if len(digits) <= _SHOWN_DIGITS else f"{digits[:_SHOWN_DIGITS]}…"
    return f"the number {excerpt} needs more than 64 bits, so it cannot be recorded exactly; write it as a string"


def _may_be_long(text: bytes) -> bool:
    """Return whether *text* has so many digits in a row that they may need more than 64 bits. A time in nanoseconds does not."""
    digits = text.translate(_ANY_DIGIT)
    place = digits.find(_LONG)
    while place >= 0:
        end = place + len(_LONG)
        is_alone = place > 0 and text[place - 1] in _BEFORE and end < len(text) and text[end] in _AFTER
        if not is_alone or text[place:end] > _MOST:
            return True
        place = digits.find(_LONG, end)
    return False


def _is_wide(digits: str) -> bool:
    return len(digits) > len("-9223372036854775808") or not -(2**63) <= int(digits) < 2**64


def _is_rounded(digits: str) -> bool:
    number = float(digits)
    long = sum(map(str.isdigit, digits.lower().partition("e")[0])) > _EXACT_DIGITS
    return long and abs(number) >= 2**53 and Decimal(digits) not in (Decimal(number), Decimal(repr(number)))


def check_field(_instance: object, _attribute: attrs.Attribute[str | None], field: str | None) -> None:
    """Check an option that :func:`locate` follows, as an attrs validator; None means the whole output.

    :raises ConfigError: if *field* is an empty string.
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
        return read_json(text)
    except orjson.JSONDecodeError:
        return MISSING


def numbers_in(value: Mapping[str, Any]) -> dict[str, object]:
    """Return the numbers (also as text), true, false and null values of *value* at any depth; null is a missing number."""
    numbers: dict[str, object] = {}
    for key, item in value.items():
        if isinstance(item, Mapping):
            if inside := numbers_in(item):
                numbers[key] = inside
        elif item is None or isinstance(item, bool | int | float):
            numbers[key] = item
        elif isinstance(item, str) and _NUMBER.fullmatch(item):
            numbers[key] = number if isfinite(number := float(item)) else None
    return numbers


def repeated_key(text: bytes) -> str | None:
    """Return the first key that an object of the JSON *text* has twice; None if there is no such key."""
    repeated: list[str] = []

    def add(pairs: list[tuple[str, object]]) -> None:
        keys = [key for key, _ in pairs]
        if len(set(keys)) < len(keys):
            repeated.append(next(key for number, key in enumerate(keys) if key in keys[:number]))

    # Not orjson, which keeps the last value in silence. Integers stay text: Python refuses very long integers.
    json.loads(text, object_pairs_hook=add, parse_int=str)
    return repeated[0] if repeated else None
