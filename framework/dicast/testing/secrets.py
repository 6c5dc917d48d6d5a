"""Secrets among the options of a component, and the texts in which they must not occur."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from .._kernel.pipeline import types as hints
from .._kernel.values import Secret

SHORTEST = 8
"""Length of the shortest secret that is looked for: a shorter text may occur by chance."""

_PLANTED = "dicast-planted-secret"


def planted_secrets(cls: type[Any], options: Mapping[str, object]) -> dict[str, object]:
    """Return a unique value for each option of *cls* that takes a secret, except secrets inside lists and mappings."""
    return {
        hints.keys(field)[0]: f"{_PLANTED}-{field.name}"
        for field in hints.fields(cls)
        if any(member is Secret for member in hints.members(field.type))
        and isinstance(options.get(hints.keys(field)[0], ""), str)
    }


def secrets(value: Any) -> Iterator[str]:
    """Yield the values of all secrets among the options of *value*, including nested options."""
    if isinstance(value, Secret):
        yield value.value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from secrets(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from secrets(item)
    elif attrs.has(type(value)) and not isinstance(value, type):
        for field in attrs.fields(type(value)):
            yield from secrets(getattr(value, field.name))


def texts_of(value: object) -> Iterator[str]:
    """Yield the texts of answers: the repr of each, and the message of each exception."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from texts_of(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts_of(item)
    elif isinstance(value, BaseException):
        yield f"{value!r} {value}"
    elif attrs.has(cls := type(value)):
        yield repr(value)
        for field in attrs.fields(cls):
            yield from texts_of(getattr(value, field.name))
    else:
        yield value if isinstance(value, str) else repr(value)
