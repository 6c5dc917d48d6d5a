"""Shapes of data, and the faults of a value that should have a shape."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from dicast import nearest

from .places import Path


@attrs.frozen
class Fault:
    """A fault of the value at *path*, or of its *key*; *hint* is the nearest right name."""

    path: Path
    message: str
    hint: str | None = None
    key: bool = False


Shape = Callable[[Any, Path], Iterator[Fault]]
"""Yields what is wrong with a value at a path."""


def fits(test: Callable[[Any], bool], words: str) -> Shape:
    """Return the shape of a value that passes *test*; *words* describe it."""

    def check(value: Any, path: Path) -> Iterator[Fault]:
        if not test(value):
            yield Fault(path, f"{_name(path)} is {words}, not {shorten(value)}")

    return check


def listed(item: Shape) -> Shape:
    """Return the shape of a list of values of one shape."""

    def check(value: Any, path: Path) -> Iterator[Fault]:
        if not isinstance(value, list):
            yield Fault(path, f"{_name(path)} is a list, not {shorten(value)}")
            return
        for index, element in enumerate(value):
            yield from item(element, (*path, index))

    return check


def mapped(item: Shape) -> Shape:
    """Return the shape of an object whose values have one shape, under any names."""

    def check(value: Any, path: Path) -> Iterator[Fault]:
        if not isinstance(value, Mapping):
            yield Fault(path, f"{_name(path)} is an object, not {shorten(value)}")
            return
        for name, element in value.items():
            yield from item(element, (*path, name))

    return check


def record(noun: str, members: Mapping[str, Shape], required: tuple[str, ...] = ()) -> Shape:
    """Return the shape of an object with these *members* alone. A member that is not *required* may be null.

    :param noun: names the object in messages.
    """

    def check(value: Any, path: Path) -> Iterator[Fault]:
        if not isinstance(value, Mapping):
            yield Fault(path, f"{noun} is an object, not {shorten(value)}")
            return
        for name, member in value.items():
            if member is None and name in members and name not in required:
                continue
            if name in members:
                yield from members[name](member, (*path, name))
            else:
                hint = nearest(name, members)
                yield Fault((*path, name), f"{noun} has no {name!r} (it has {', '.join(members)})", hint, key=True)
        for name in required:
            if name not in value:
                yield Fault(path, f"{noun} needs {name!r}")

    return check


def one_of(*words: str) -> Shape:
    """Return the shape of one of these texts."""

    def check(value: Any, path: Path) -> Iterator[Fault]:
        if value not in words:
            hint = nearest(value, words) if isinstance(value, str) else None
            yield Fault(path, f"{_name(path)} is {', '.join(words[:-1])} or {words[-1]}, not {shorten(value)}", hint)

    return check


def either(*shapes: Shape) -> Shape:
    """Return the shape of a value of any of *shapes*. The last shape reports the faults."""

    def check(value: Any, path: Path) -> Iterator[Fault]:
        faults = [list(shape(value, path)) for shape in shapes]
        if all(faults):
            yield from faults[-1]

    return check


def is_number(value: object) -> bool:
    """Return True if *value* is a finite number and no boolean."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def shorten(value: object) -> str:
    """*value* as messages show it, in a few words."""
    if isinstance(value, Mapping | list | tuple):
        return f"{'an object' if isinstance(value, Mapping) else 'a list'} of {len(value)}"
    return "null" if value is None else f"{value!r:.60}"


ANY = fits(lambda _: True, "anything")
TEXT = fits(lambda value: isinstance(value, str), "a text")
NUMBER = fits(is_number, "a number")
COUNT = fits(
    lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= 0, "a whole number, 0 or more"
)
SHARE = fits(lambda value: is_number(value) and 0 <= value <= 1, "a number from 0 to 1")


def _name(path: Path) -> str:
    """Return the last key of *path* with its indices: ``tags[0]``."""
    path = path[max((index for index, step in enumerate(path) if isinstance(step, str)), default=0) :]
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".") or "this"
