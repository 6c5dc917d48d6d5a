"""JSON with lone surrogates: halves of characters, which JSON can escape and Unicode text cannot contain."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from .._kernel.classes import frozen
from .._kernel.values.names import not_finite

_LONE = re.compile("[\ud800-\udfff]")


@frozen
class Escaped:
    """A JSON *value* whose texts have escapes in place of lone surrogates, and the reason *why* the original value cannot be recorded."""

    value: Any
    why: str


def with_lone_surrogates(text: bytes) -> Escaped | None:
    """Return the value of the JSON *text* if lone surrogates are its only fault, else None."""
    try:
        value = json.loads(text.decode(), parse_constant=_refuse)
        return None if not_finite(value, "") else escaped(value)
    except (ValueError, RecursionError):
        return None


def escaped(value: Any) -> Escaped | None:
    """Return *value* with each lone surrogate in its texts, keys included, written as its escape; None if there is none."""
    places: list[tuple[str, str]] = []
    result = _escaped(value, "", places)
    if not places:
        return None
    place, surrogate = places[0]
    rest = f", and in {len(places) - 1:,} more" if len(places) > 1 else ""
    return Escaped(result, f"the text at {place!r}{rest} has the lone surrogate {surrogate}, which is not Unicode")


def _escaped(value: Any, place: str, places: list[tuple[str, str]]) -> Any:
    if isinstance(value, str):
        return _text(value, place, places)
    if isinstance(value, Mapping):
        members = ((_text(str(key), place, places), member) for key, member in value.items())
        return {key: _escaped(member, f"{place}.{key}".strip("."), places) for key, member in members}
    if isinstance(value, list | tuple):
        return [_escaped(item, f"{place}.{number}".strip("."), places) for number, item in enumerate(value)]
    return value


def _text(text: str, place: str, places: list[tuple[str, str]]) -> str:
    if text.isascii() or (match := _LONE.search(text)) is None:
        return text
    places.append((place, _escape(match)))
    return _LONE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
