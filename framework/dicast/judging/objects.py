"""JSON objects in the text of a reply."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import attrs

DEPTH = 4
"""The number of levels of containers in an object, itself included; deeper objects are not read as a whole."""

START = re.compile(r'\{[ \t\n\r]*["}]')
"""The beginning of an object."""

_BLANKS = r"[ \t\n\r]*"
# Both are unrolled: there is one way to match a string, so it takes linear time.
_STRING = r'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"'
_LENIENT_STRING = r'"[^"\\\x00-\x08\x0b\x0c\x0e-\x1f]*(?:\\.[^"\\\x00-\x08\x0b\x0c\x0e-\x1f]*)*"'
_NUMBER = r"-?(?:Infinity|(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)"


class BadReply(ValueError):
    """A reply that holds no verdict. Its message gives the reason and quotes no text of the reply."""


@attrs.frozen
class Member:
    """One key of an object with its *value*, whose text is from *start* to *end* in the reply."""

    key: str
    value: object
    start: int
    end: int


@attrs.frozen
class ReplyObject:
    """A JSON object in a text, from *start* to *end*: its members in order, repeated keys included."""

    members: tuple[Member, ...]
    start: int
    end: int

    def has(self, key: str, value: object) -> bool:
        """Return whether the object has *key* with this *value*."""
        return any(member.key == key and member.value == value for member in self.members)

    def member(self, key: str) -> Member:
        """Return the member *key*.

        :raises BadReply: if there is none.
        """
        for member in self.members:
            if member.key == key:
                return member
        raise BadReply(f"the verdict has no {key!r}")

    def number(self, key: str, low: float = 0.0, high: float = 1.0) -> float:
        """Return the number at *key*, finite and from *low* to *high*; no value is converted or clamped.

        :raises BadReply: if it is anything else.
        """
        value = self.member(key).value
        if not isinstance(value, float) or not low <= value <= high:
            raise BadReply(f"{key!r} is {_kind(value)}, not a number from {low:g} to {high:g}")
        return value

    def text(self, key: str) -> str:
        """Return the string at *key*.

        :raises BadReply: if it is anything else.
        """
        value = self.member(key).value
        if not isinstance(value, str):
            raise BadReply(f"{key!r} is {_kind(value)}, not a string")
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise BadReply(f"{key!r} has half a surrogate pair, so it is not Unicode text")
        return value

    def flag(self, key: str) -> bool:
        """Return the boolean at *key*.

        :raises BadReply: if it is anything else.
        """
        value = self.member(key).value
        if not isinstance(value, bool):
            raise BadReply(f"{key!r} is {_kind(value)}, neither true nor false")
        return value


def _kind(value: object) -> str:
    """Return the type of a JSON value in words; the value itself only if it is a number."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case float():
            return f"{value:.12g}"
        case str():
            return "a string"
    return "a list or an object"


def objects(text: str, holding: str = "", *, lenient: bool = False) -> Iterator[ReplyObject]:
    """Yield the readable JSON objects in *text* that are not inside another object, in order.

    Only objects whose text contains *holding* are read. The time grows linearly with the length of the text. *lenient* allows line breaks
    and tabs in strings, and a comma after the last item.
    """
    object_ = _patterns(lenient)["object"]
    at = START.search(text)
    while at:
        match = object_.match(text, at.start())
        if match and holding in match[0] and (read_object := _read(text, match.start(), match.end(), lenient)):
            yield read_object
        at = START.search(text, match.end() if match else at.start() + 1)


def nested_objects(text: str) -> Iterator[ReplyObject]:
    """Yield every JSON object in *text*, including objects in other objects and in the strings of other objects."""
    object_ = _patterns(lenient=False)["object"]
    for at in START.finditer(text):
        match = object_.match(text, at.start())
        read_object = _read(text, match.start(), match.end(), lenient=False) if match else None
        if read_object:
            yield read_object
            for inner in _strings([member.value for member in read_object.members]):
                yield from nested_objects(inner)


def _strings(values: Sequence[object]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str) and "{" in value:
            yield value
        elif isinstance(value, tuple):
            yield from _strings(value)


def _read(text: str, start: int, end: int, lenient: bool) -> ReplyObject | None:
    """Return the object from *start* to *end*; None if a string has an unknown escape, or an inner container a trailing comma."""
    decoder = _LENIENT_DECODER if lenient else _DECODER
    try:
        members = tuple(
            Member(
                str(decoder.decode(match["key"])),
                _plain(decoder.decode(match["value"])),
                match.start("value"),
                match.end("value"),
            )
            for match in _patterns(lenient)["member"].finditer(text, start + 1, end)
        )
    except ValueError:
        return None
    return ReplyObject(members, start, end)


# Numbers are floats of any length: Python limits the digits of an integer.
_DECODER = json.JSONDecoder(parse_int=float)
_LENIENT_DECODER = json.JSONDecoder(parse_int=float, strict=False)


def _plain(value: object) -> object:
    if isinstance(value, list):
        return tuple(_plain(item) for item in value)
    return tuple(sorted(value)) if isinstance(value, dict) else value


@cache
def _patterns(lenient: bool) -> Mapping[str, re.Pattern[str]]:
    """Return patterns for an object of at most ``DEPTH`` levels and for a member of one; compiled for the first reply."""
    string = _LENIENT_STRING if lenient else _STRING
    value = scalar = f"{string}|{_NUMBER}|NaN|true|false|null"
    for _ in range(DEPTH - 1):
        member = f"{string}{_BLANKS}:{_BLANKS}(?:{value})"
        value = f"{scalar}|{_items(value, '[]', lenient)}|{_items(member, '{}', lenient)}"
    member_list = _items(f"{string}{_BLANKS}:{_BLANKS}(?:{value})", "{}", lenient)
    named = f"(?P<key>{string}){_BLANKS}:{_BLANKS}(?P<value>{value}){_BLANKS},?"
    return {"object": re.compile(member_list), "member": re.compile(named)}


def _items(item: str, brackets: str, lenient: bool) -> str:
    """Return a pattern of items between *brackets*, with a comma between two items, and if *lenient* also after the last."""
    opening, closing = brackets[0], brackets[1]
    after = "" if lenient else f"(?!\\{closing})"
    comma = f"(?:,{_BLANKS}{after}|(?=\\{closing}))"
    return f"\\{opening}{_BLANKS}(?:(?:{item}){_BLANKS}{comma})*\\{closing}"
