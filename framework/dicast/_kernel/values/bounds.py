"""Bounds of an option that is a number."""

from __future__ import annotations

from typing import Any

import attrs

from ..classes import frozen
from .errors import ConfigError


@frozen
class Within:
    """Validator (attrs) of an option: the number, if it is not None, is from *low* to *high*; *words* describe the bounds.

    *open* excludes the two ends. ``dicast schema`` has the bounds, for editors, and also the bounds of attrs' own ``ge``, ``gt``, ``le`` and
    ``lt``.
    """

    low: float
    high: float
    words: str
    open: bool = attrs.field(default=False, kw_only=True)

    def __call__(self, instance: object, attribute: attrs.Attribute[Any], value: float | None) -> None:
        """Compare the *value* of *attribute* with the bounds.

        :raises ConfigError: if it is outside; the message has the option's name, *words* and the value.
        """
        if value is not None and not (self.low < value < self.high if self.open else self.low <= value <= self.high):
            raise ConfigError(f"invalid value for {attribute.name}, expected {self.words}, got {value}")


@frozen
class WithinOr:
    """Validator of an option that is *word*, or a number *within* bounds; ``dicast schema`` has the bounds of the number."""

    within: Within
    word: str

    def __call__(self, instance: object, attribute: attrs.Attribute[Any], value: float | str) -> None:
        """Compare the *value* of *attribute* with the bounds, unless it is the word.

        :raises ConfigError: if it is neither the word nor within the bounds.
        """
        if value != self.word:
            assert not isinstance(value, str)  # the type of the option allows no other word
            self.within(instance, attribute, value)
