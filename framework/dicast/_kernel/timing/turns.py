"""How many calls are under way at once: a jury's, and those of a judge that asks several times, count against ``concurrency``."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any


class Turn:
    """The right to have one call under way. While its holder waits for a call inside, that call has it."""

    def __init__(self, free: asyncio.Semaphore) -> None:
        self.free = free
        self._lent = asyncio.Lock()

    async def take(self) -> Callable[[], None]:
        """Wait until this turn is not lent, or another one is free, and return what gives it back."""
        for one in (self._lent, self.free):
            if not one.locked():
                await one.acquire()
                return one.release
        either = self._lent, self.free
        waiting = [asyncio.ensure_future(one.acquire()) for one in either]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            _let_go(waiting, either)
            raise
        first = next(place for place, future in enumerate(waiting) if future.done())
        _let_go(waiting[first + 1 :] + waiting[:first], either[first + 1 :] + either[:first])
        waiting[first].result()
        return either[first].release


def _let_go(waiting: Sequence[asyncio.Task[Any]], either: Sequence[asyncio.Lock | asyncio.Semaphore]) -> None:
    for future, one in zip(waiting, either, strict=True):
        if not future.done():
            future.cancel()
        elif not future.cancelled():
            one.release()


TURN: ContextVar[Turn | None] = ContextVar("dicast_turn", default=None)
"""The turn of what is under way in the current task; None where calls are not counted."""


@contextmanager
def holding(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """Let *variable* have *value* while the block runs.

    A coroutine that was given up is thrown away later, in a context that is not its own: there is nothing to set back there.
    """
    token = variable.set(value)
    try:
        yield
    finally:
        if not isinstance(sys.exception(), GeneratorExit):
            variable.reset(token)


@asynccontextmanager
async def subject_turn(free: asyncio.Semaphore) -> AsyncIterator[None]:
    """Wait for one of the *free* turns, for a subject."""
    async with free:
        with holding(TURN, Turn(free)):
            yield


@asynccontextmanager
async def call_turn(given_up: Callable[[], None] | None = None) -> AsyncIterator[None]:
    """Wait until one more call may be made inside what is under way: at once, where that does nothing but wait for it.

    *given_up* is called where the wait is cancelled: nothing was sent then.
    """
    around = TURN.get()
    if around is None:
        yield
        return
    try:
        give_back = await around.take()
    except asyncio.CancelledError:
        if given_up is not None:
            given_up()
        raise
    try:
        with holding(TURN, Turn(around.free)):
            yield
    finally:
        give_back()
