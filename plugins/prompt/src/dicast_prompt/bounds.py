"""Limits of a rendering: its work, the size of its values, and the expected length of a value before it is computed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from string import Formatter
from typing import Any

import attrs

MOST_STEPS = 1_000_000
"""Most rounds of loops and calls in one rendering: about half a second of work."""

MOST_CHARS = 10_000_000
"""Greatest length of a rendered template, and of each value that it computes."""

MOST_MADE = 100_000_000
"""Most characters that one rendering may produce in total; an item of a list counts as thirty, by its time."""

WIDEST = 10_000
"""Largest width in a template."""

_ITEM = 30
_PERCENT_WIDTHS = re.compile(r"[)%][-+ #0]*([0-9]*)(?:\.([0-9]+))?")
_PERCENT_STARS = re.compile(r"[)%][-+ #0]*(?:[0-9]*\.)?\*")


class Unrenderable(Exception):
    """A template cannot be rendered for a row; *kind* is the Failure's."""

    def __init__(self, message: str, kind: str = "crashed") -> None:
        super().__init__(message)
        self.kind = kind


@attrs.define
class Steps:
    """Remaining limits of a rendering. *chars* is the most that its template prints between two steps, without values."""

    chars: int = 0
    left: int = MOST_STEPS
    characters: int = 0

    def take(self) -> None:
        """Count a round of a loop, or a call.

        :raises Unrenderable: when the limit is reached.
        """
        self.left -= 1
        if self.left < 0:
            raise Unrenderable(f"it takes more than {MOST_STEPS:,} rounds of loops and calls")
        self.spend(self.chars)

    def spend(self, chars: int) -> None:
        """Count *chars* characters of the rendering.

        :raises Unrenderable: when the limit is reached.
        """
        self.characters += chars
        if self.characters > MOST_MADE:
            raise Unrenderable(f"it produces more than {MOST_MADE:,} characters in total")

    def make(self, length: int) -> None:
        """Count one value of *length* before it is computed.

        :raises Unrenderable: when it would be too long.
        """
        if length > MOST_CHARS:
            raise Unrenderable(f"it produces a value longer than {MOST_CHARS:,} characters or items")
        self.spend(length)

    def weigh(self, value: object) -> int:
        """Count the size of *value*, and return it. A part that occurs twice counts twice, as in print.

        :raises Unrenderable: when it is too large.
        """
        if isinstance(value, str):
            self.make(len(value))
            return len(value)
        before, waiting = self.characters, [value]
        while waiting:
            part = waiting.pop()
            if isinstance(part, str):
                self.make(len(part))
            elif isinstance(part, dict | list | tuple):
                self.make(len(part))
                self.spend(_ITEM * (len(part) + 1))
                waiting += part
                if isinstance(part, dict):
                    waiting += part.values()
            elif isinstance(part, int):
                self.spend(part.bit_length() // 3 + 1)
        return self.characters - before


def joined_length(parts: Iterable[str], glue: str) -> int:
    """Return the length of *parts* joined by *glue*."""
    return sum(len(part) + len(glue) for part in parts)


def replaced_length(text: str, old: str, new: str) -> int:
    """Return the greatest length of *text* with *new* in place of each *old*."""
    return len(text) + text.count(old) * len(new)


def format_length(text: str, most: int) -> int:
    """Return the greatest length of ``text.format(…)`` with values of up to *most* characters.

    :raises Unrenderable: for a width that is not a number in *text*.
    """
    length = len(text)
    for _, name, spec, _ in Formatter().parse(text):
        if spec and "{" in spec:
            raise Unrenderable("a format takes no width from a value")
        if name is not None:
            length += most + _widths(re.findall("[0-9]+", spec or ""))
    return length


def percent_length(text: str, most: int) -> int:
    """Return the greatest length of ``text % …`` with values of up to *most* characters.

    :raises Unrenderable: for a width that is not a number in *text*.
    """
    plain = text.replace("%%", "")
    if _PERCENT_STARS.search(plain):
        raise Unrenderable("a format takes no width from a value")
    return len(text) + plain.count("%") * most + sum(map(_widths, _PERCENT_WIDTHS.findall(plain)))


def _widths(numbers: Iterable[str]) -> int:
    """Return the sum of *numbers*; a long number is cut to its first digits."""
    return sum(int(number[:12]) for number in numbers if number)


def method_length(owner: str, name: str, arguments: tuple[Any, ...], options: Mapping[str, Any], steps: Steps) -> int:
    """Return the greatest length of the result of *owner*'s method *name*, or its work in thousands of comparisons."""
    texts = [argument for argument in (*arguments, *options.values()) if isinstance(argument, str)]
    if name == "join":
        return joined_length((part for part in arguments[0] if isinstance(part, str)), owner)
    if name == "replace" and len(texts) > 1:
        return replaced_length(owner, texts[0], texts[1])
    if name == "format":
        return format_length(owner, sum(map(steps.weigh, (*arguments, *options.values()))))
    return len(owner) + sum(map(len, texts)) * len(owner) // 1000
