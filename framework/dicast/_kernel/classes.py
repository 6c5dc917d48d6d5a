"""Class decorators of the kernel: attrs classes whose repr, comparison and hash read the fields at call time.

attrs generates and compiles the three methods for each class. This takes half of the time to create a class, and few of them are
ever called.
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
        """Decorate a class like ``attrs.define``; *eq* is the only option."""
        return _decorate(attrs.define, cls, equals=eq)

    def frozen(cls: type | None = None, *, eq: bool = True) -> Any:
        """Decorate a class like ``attrs.frozen``; *eq* is the only option."""
        return _decorate(attrs.frozen, cls, equals=eq)


__all__ = ["Attribute", "define", "evolve", "field", "fields", "frozen", "validators"]


def _decorate(make: Callable[..., Any], cls: type | None, *, equals: bool) -> Any:
    if cls is None:
        return lambda later: _decorate(make, later, equals=equals)
    members = vars(cls)
    decorated = make(cls, eq=False, repr=False)
    repr_, equal, hashed = _methods(fields(decorated))
    if "__repr__" not in members:
        decorated.__repr__ = repr_
    if equals and "__eq__" not in members:
        decorated.__eq__, decorated.__hash__ = equal, hashed if make is attrs.frozen else None
    return decorated


def _methods(attributes: Sequence[Attribute[Any]]) -> tuple[Callable[..., Any], ...]:
    """Return the repr, the comparison and the hash of a class with these fields."""
    names = [attribute.name for attribute in attributes if attribute.repr]
    values = attrgetter(
        "__class__", "__module__", *(attribute.name for attribute in attributes if attribute.eq)
    )  # with two or more names the result is a tuple

    @recursive_repr()
    def repr_(self: Any) -> str:
        inside = ", ".join(f"{name}={getattr(self, name, attrs.NOTHING)!r}" for name in names)
        return f"{type(self).__qualname__.rpartition('>.')[2]}({inside})"

    def equal(self: Any, other: object) -> Any:
        return all(map(eq, values(self), values(other))) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: Any) -> int:
        return hash(values(self))

    return repr_, equal, hashed
