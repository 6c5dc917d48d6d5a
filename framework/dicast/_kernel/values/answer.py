"""Answers of components, which a caller can await."""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from typing import Any, Self, TypeGuard


class ReadyAnswer:
    """Base class of the answers of components.

    ``await`` returns an answer unchanged, without a pause. So the caller of a nested component always writes ``await``: the answer of a
    ``def`` can be awaited like the answer of an ``async def``.
    """

    __slots__ = ()

    def __await__(self) -> Generator[Any, Any, Self]:
        yield from ()
        return self


def is_pending(value: object) -> TypeGuard[Awaitable[Any]]:
    """Return True if *value* has to be awaited to get an answer: it is awaitable, and no answer itself."""
    return not isinstance(value, ReadyAnswer) and isinstance(value, Awaitable)
