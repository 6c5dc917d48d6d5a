"""How much a rendering may do and make, and how long what it is about to make would be."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from string import Formatter
from typing import Any

import attrs

MOST_STEPS = 1_000_000
"""How many rounds of loops and calls one rendering may take: about half a second of work."""

MOST_CHARS = 10_000_000
"""How long a rendered template may become, and any value that it makes on the way."""

MOST_MADE = 100_000_000
"""How much one rendering may make altogether, in characters; an item of a list counts as thirty, by the time it takes."""

WIDEST = 10_000
"""The largest width that a template may ask for."""

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
    """What a rendering may still do. *chars* is what its template prints at most between two steps, beside values."""

    chars: int = 0
    left: int = MOST_STEPS
    made: int = 0

    def take(self) -> None:
        """Take a round of a loop, or a call.

        :raises Unrenderable: when there are none left.
        """
        self.left -= 1
        if self.left < 0:
            raise Unrenderable(f"it takes more than {MOST_STEPS:,} rounds of loops and calls")
        self.spend(self.chars)

    def spend(self, chars: int) -> None:
        """Take so many of the characters that the rendering may make.

        :raises Unrenderable: when there are not so many left.
        """
        self.made += chars
        if self.made > MOST_MADE:
            raise Unrenderable(f"it makes more than {MOST_MADE:,} characters on the way")

    def make(self, length: int) -> None:
        """Make room for one value, before there is one.

        :raises Unrenderable: when it would be too long.
        """
        if length > MOST_CHARS:
            raise Unrenderable(f"it makes something longer than {MOST_CHARS:,} characters or items")
        self.spend(length)

    def weigh(self, value: object) -> int:
        """Spend what *value* amounts to, and return that; what stands in it twice counts twice, as it does when it is printed.

        :raises Unrenderable: when it is too much.
        """
        if isinstance(value, str):
            self.make(len(value))
            return len(value)
        before, waiting = self.made, [value]
        while waiting:
            one = waiting.pop()
            if isinstance(one, str):
                self.make(len(one))
            elif isinstance(one, dict | list | tuple):
                self.make(len(one))
                self.spend(_ITEM * (len(one) + 1))
                waiting += one
                if isinstance(one, dict):
                    waiting += one.values()
            elif isinstance(one, int):
                self.spend(one.bit_length() // 3 + 1)
        return self.made - before


def joined_length(parts: Iterable[str], glue: str) -> int:
    """How long *parts* with *glue* between them are."""
    return sum(len(part) + len(glue) for part in parts)


def replaced_length(text: str, old: str, new: str) -> int:
    """How long *text* is, at most, with *new* in the place of each *old*."""
    return len(text) + text.count(old) * len(new)


def format_length(text: str, most: int) -> int:
    """How long ``text.format(…)`` is, at most, where each value is up to *most* long.

    :raises Unrenderable: for a width that is not written in *text*.
    """
    length = len(text)
    for _, name, spec, _ in Formatter().parse(text):
        if spec and "{" in spec:
            raise Unrenderable("a format takes no width from a value")
        if name is not None:
            length += most + _widths(re.findall("[0-9]+", spec or ""))
    return length


def percent_length(text: str, most: int) -> int:
    """How long ``text % …`` is, at most, where each value is up to *most* long.

    :raises Unrenderable: for a width that is not written in *text*.
    """
    plain = text.replace("%%", "")
    if _PERCENT_STARS.search(plain):
        raise Unrenderable("a format takes no width from a value")
    return len(text) + plain.count("%") * most + sum(map(_widths, _PERCENT_WIDTHS.findall(plain)))


def _widths(numbers: Iterable[str]) -> int:
    """The sum of *numbers*; of one with many digits the first are enough."""
    return sum(int(number[:12]) for number in numbers if number)


def method_length(owner: str, name: str, given: tuple[Any, ...], options: Mapping[str, Any], steps: Steps) -> int:
    """How long the method *name* makes *owner*, at most, or how long it takes in thousands of comparisons."""
    texts = [one for one in (*given, *options.values()) if isinstance(one, str)]
    if name == "join":
        return joined_length((part for part in given[0] if isinstance(part, str)), owner)
    if name == "replace" and len(texts) > 1:
        return replaced_length(owner, texts[0], texts[1])
    if name == "format":
        return format_length(owner, sum(map(steps.weigh, (*given, *options.values()))))
    return len(owner) + sum(map(len, texts)) * len(owner) // 1000
