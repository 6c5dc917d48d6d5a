"""Is the output as long as it should be?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Literal

import attrs

from dicast import ConfigError, Score, Subject, Within
from dicast.toolkit.json_values import MISSING, check_field, locate

from .content import texts

Unit = Literal["chars", "bytes", "words"]

_PASSED = Score(1.0)
_CHUNK = 2**20
_BOUND = Within(0, inf, "0 or more (a length is never negative)")


def _count_words(text: str) -> int:
    """Return ``len(text.split())`` without holding all the words of a long text at once."""
    if len(text) <= _CHUNK:
        return len(text.split())
    starts = range(0, len(text), _CHUNK)
    divided = sum(not (text[at - 1].isspace() or text[at].isspace()) for at in starts[1:])
    return sum(len(text[at : at + _CHUNK].split()) for at in starts) - divided


_MEASURES: Mapping[str, Callable[[str], int]] = {
    "chars": len,
    # A lone surrogate is three bytes, as Python would write it; refusing it would say nothing about the length.
    "bytes": lambda text: len(text.encode("utf-8", "surrogatepass")),
    "words": _count_words,
}


@attrs.frozen
class Length:
    """1 inside the bounds, falling off outside them.

    Below ``min`` the score is length/min; above ``max`` it is 1 - (length - max)/max, and 0 from twice ``max`` on. An
    object or list is as long as all its strings together.

    :param min: the shortest length with full credit; none by default. ``min`` and ``min_chars`` are one option.
    :param max: the longest length with full credit; none by default. ``max`` and ``max_chars`` are one option.
    :param unit: ``chars`` (Unicode code points), ``bytes`` (of UTF-8) or ``words`` (separated by white space).
    :param field: measure only this place in the output, a dotted path (``steps.0.code``) or a JSON pointer
        (``/steps/0/code``); text is read as JSON to get there. A missing field has length 0.
    """

    name = "length"
    tier = "proxy"
    needs_output = "always"

    min: int | None = attrs.field(default=None, validator=_BOUND, metadata={"keys": ("min", "min_chars")})
    max: int | None = attrs.field(default=None, validator=_BOUND, metadata={"keys": ("max", "max_chars")})
    unit: Unit = "chars"
    field: str | None = attrs.field(default=None, validator=check_field)

    def __attrs_post_init__(self) -> None:
        if self.unit not in _MEASURES:
            raise ConfigError(f"unknown unit {self.unit!r}: a length is in {', '.join(_MEASURES)}")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ConfigError(f"min {self.min} is more than max {self.max}: no length is inside; swap them")

    def score(self, subject: Subject) -> Score:
        """Measure the output of *subject*, or its field."""
        value = subject.output if self.field is None else locate(subject.output, self.field)
        measure = _MEASURES[self.unit]
        length = measure(value) if isinstance(value, str) else sum(map(measure, texts(value)))
        if self.min is not None and length < self.min:
            why = f"; the output has no field {self.field!r}" if value is MISSING else ""
            details = f"{length} {self.unit}, fewer than {self.min}{why}"
            return Score(length / self.min, details=details, signals={self.unit: length, "min": False})
        if self.max is not None and length > self.max:
            credit = 0.0 if length >= 2 * self.max else 1 - (length - self.max) / self.max
            details = f"{length} {self.unit}, more than {self.max}"
            return Score(credit, details=details, signals={self.unit: length, "max": False})
        return _PASSED
