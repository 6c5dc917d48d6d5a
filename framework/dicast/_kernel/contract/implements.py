"""Check whether an object has the members of a protocol."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from typing_extensions import TypeIs

P = TypeVar("P")

_NOT_MEMBERS = (object, Protocol, Generic)


def implements(value: object, protocol: Callable[..., P]) -> TypeIs[P]:
    """Return whether *value* has all members of *protocol*, including members that its ``__getattr__`` provides.

    From Python 3.12 on, ``isinstance`` ignores such members: an object that wraps another would lose its leases and its price.
    """
    return all(hasattr(value, name) for name in _member_names(cast("type", protocol)))


@cache
def _member_names(protocol: type) -> frozenset[str]:
    bases = [base for base in protocol.__mro__ if base not in _NOT_MEMBERS]
    names = {name for base in bases for name in (*vars(base), *inspect.get_annotations(base))}
    return frozenset(name for name in names if not name.startswith("_"))
