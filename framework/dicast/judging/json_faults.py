"""The place and the kind of the first error in JSON text, without quoting the text."""

from __future__ import annotations

import re

import attrs

_SKIPPED = re.compile(r"[ \t\n\r]*")
_BODY = re.compile(r'[^"\\\x00-\x08\x0b\x0c\x0e-\x1f]*')
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_SCALAR = re.compile(
    r"(?:-?(?:Infinity|(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)|NaN|true|false|null)(?![\w.+-])"
)


@attrs.frozen
class Fault:
    """An error at the index *at* of a text; *problem* describes it."""

    at: int
    problem: str


def place(text: str, at: int) -> str:
    """Return the line, the column and the number of the character at the index *at* as text, all counted from 1."""
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    character = f"character {at + 1} of {len(text)}" if at < len(text) else "the end of the text"
    return f"line {line}, column {column}, {character}"


def first_fault(text: str, start: int, depth: int) -> Fault | None:
    """Return the first error of the object that begins at *start*; None if it can be read.

    Line breaks in strings and a comma after the last member are no errors. *depth* is the number of levels that are allowed. The time is
    linear in the length of *text*.
    """
    closings, at, expects = list[str](), start, "value"
    while True:
        at = _end(_SKIPPED, text, at)
        letter = text[at : at + 1]
        if not letter:
            return Fault(at, "the text ends inside the object")
        if expects == "separator":
            if letter == ",":
                at, expects = at + 1, "key" if closings[-1] == "}" else "value"
                continue
            if letter != closings[-1]:
                return Fault(at, f"a comma or {closings[-1]!r} is missing")
        if closings and letter == closings[-1]:
            closings.pop()
            at, expects = at + 1, "separator"
            if not closings:
                return None
            continue
        if expects == "value" and letter in "{[":
            if len(closings) == depth:
                return Fault(at, f"the object has more than {depth} levels")
            closings.append("}" if letter == "{" else "]")
            at, expects = at + 1, "key" if letter == "{" else "value"
            continue
        end = _key(text, at) if expects == "key" else _scalar(text, at)
        if isinstance(end, Fault):
            return end
        at, expects = end, "value" if expects == "key" else "separator"


def _key(text: str, at: int) -> int | Fault:
    """Return the index after the key and the colon at *at*, or the fault there."""
    if text[at] != '"':
        return Fault(at, "a key in double quotes is missing")
    end = _string(text, at)
    if isinstance(end, Fault):
        return end
    end = _end(_SKIPPED, text, end)
    return end + 1 if text[end : end + 1] == ":" else Fault(end, "a colon is missing")


def _scalar(text: str, at: int) -> int | Fault:
    """Return the index after the string, number or word at *at*, or the fault there."""
    if text[at] == '"':
        return _string(text, at)
    match = _SCALAR.match(text, at)
    return Fault(at, "a JSON value is missing") if match is None else match.end()


def _string(text: str, at: int) -> int | Fault:
    """Return the index after the string that begins at *at*, or the fault in it."""
    end = at + 1
    while True:
        end = _end(_BODY, text, end)
        letter = text[end : end + 1]
        if letter == '"':
            return end + 1
        if not letter:
            return Fault(at, "the string that begins here does not end")
        if letter != "\\":
            return Fault(end, "a string has a control character")
        escape = _ESCAPE.match(text, end)
        if escape is None:
            return Fault(end, "a string has an unknown escape; a backslash itself is written \\\\")
        end = escape.end()


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return at if match is None else match.end()
