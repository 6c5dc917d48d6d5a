"""The kernel's classes: those of attrs, whose repr, comparison and hash read the fields when they are called.

attrs writes and compiles the three for each class. That is half of what a class costs at start, and few of them are ever called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter, eq
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

import attrs
from attrs import Attribute, evolve, field, fields, validators

if TYPE_CHECKING:
    from attrs import define, frozen
else:

    def define(cls: type | None = None, *, eq: bool = True) -> Any:
        """As ``attrs.define``, of whose options it has one."""
        return _made(attrs.define, cls, equals=eq)

    def frozen(cls: type | None = None, *, eq: bool = True) -> Any:
        """As ``attrs.frozen``, likewise."""
        return _made(attrs.frozen, cls, equals=eq)


__all__ = ["Attribute", "define", "evolve", "field", "fields", "frozen", "validators"]


def _made(make: Callable[..., Any], cls: type | None, *, equals: bool) -> Any:
    if cls is None:
        return lambda later: _made(make, later, equals=equals)
    own = vars(cls)
    made = make(cls, eq=False, repr=False)
    shown, equal, hashed = _methods(fields(made))
    if "__repr__" not in own:
        made.__repr__ = shown
    if equals and "__eq__" not in own:
        made.__eq__, made.__hash__ = equal, hashed if make is attrs.frozen else None
    return made


def _methods(those: Sequence[Attribute[Any]]) -> tuple[Callable[..., Any], ...]:
    """What makes the repr of one of a class with the fields *those*, compares two, and makes a hash."""
    named = [each.name for each in those if each.repr]
    values = attrgetter(
        "__class__", "__module__", *(each.name for each in those if each.eq)
    )  # of two names, it is a tuple

    @recursive_repr()
    def shown(self: Any) -> str:
        inside = ", ".join(f"{name}={getattr(self, name, attrs.NOTHING)!r}" for name in named)
        return f"{type(self).__qualname__.rpartition('>.')[2]}({inside})"

    def equal(self: Any, other: object) -> Any:
        return all(map(eq, values(self), values(other))) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: Any) -> int:
        return hash(values(self))

    return shown, equal, hashed
