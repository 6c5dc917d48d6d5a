"""Cache of values that are computed once in a run."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from dicast import Failure

T = TypeVar("T")


class Cache(Generic[T]):
    """Values by their keys; if all of them together weigh more than *limit*, the least recently used values are dropped."""

    def __init__(self, limit: int, weigh: Callable[[T], int] = lambda _: 1) -> None:
        self._limit, self._weigh, self._weight = limit, weigh, 0
        self._values: OrderedDict[Hashable, T] = OrderedDict()
        self._locks: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()

    async def get(self, key: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """Return the value of *key*, by *make* if there is none yet; a Failure is not stored."""
        async with self._locks.setdefault(key, asyncio.Lock()):
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
            value = await make()
            if not isinstance(value, Failure):
                self._store(key, value)
            return value

    def _store(self, key: Hashable, value: T) -> None:
        self._values[key] = value
        self._weight += self._weigh(value)
        while self._weight > self._limit:
            self._weight -= self._weigh(self._values.popitem(last=False)[1])
