"""Limit of active calls: the calls of a jury, and repeated calls of a judge, count against ``concurrency``."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Literal, TypeVar

T = TypeVar("T")


class Permits(asyncio.Semaphore):
    """Turns of a run whose chat models collect calls: a call that only waits returns its turn in the meantime.

    *granted* counts all granted turns. *idle* is set while nobody has a turn, *busy* while somebody has one.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.granted = self._active = self._owed = 0
        self.idle, self.busy = asyncio.Event(), asyncio.Event()
        self.idle.set()

    async def acquire(self) -> Literal[True]:
        """Wait for a turn, and take it."""
        await super().acquire()
        self.granted += 1
        self._active += 1
        self.idle.clear()
        self.busy.set()
        return True

    def release(self) -> None:
        """Return a turn."""
        if self._owed:
            self._owed -= 1
            return
        self._active -= 1
        if not self._active:
            self.busy.clear()
            self.idle.set()
        super().release()

    def owe(self) -> None:
        """Continue without a turn after it was returned: the next release has no effect."""
        self._owed += 1


class Turn:
    """Right to have one active call. While its holder waits for a nested call, the nested call has the right.

    In a run whose chat models collect calls, the holder has the right only while no nested call is active or rests. The first nested call takes
    it over, the last one returns it, and a resting call lets other holders use it.
    """

    def __init__(self, free: asyncio.Semaphore) -> None:
        self.free = free
        self._lent = asyncio.Lock()
        self._inside = 0

    def rest(self, free: Permits) -> None:
        """Return the turn for the time of a rest."""
        self._inside += 1
        if self._inside == 1:
            free.release()

    async def resume(self, free: Permits) -> None:
        """End the rest: wait for a turn, or continue at once while another nested call is active."""
        if self._inside == 1:
            try:
                await free.acquire()
            except BaseException:
                self.go_on(free)
                raise
            self._leave(free)
        else:
            self._inside -= 1

    def go_on(self, free: Permits) -> None:
        """End the rest at once, for a call that ends."""
        self._inside -= 1
        if not self._inside:
            free.owe()

    def _leave(self, free: Permits) -> None:
        self._inside -= 1
        if self._inside:
            free.release()

    async def _enter(self, free: Permits) -> Callable[[], None]:
        self._inside += 1
        if self._inside > 1:
            try:
                await free.acquire()
            except BaseException:
                self.go_on(free)
                raise
        return partial(self._leave, free)

    async def take(self) -> Callable[[], None]:
        """Wait until this turn is not lent or another turn is free; return the function that returns it."""
        if isinstance(self.free, Permits):
            return await self._enter(self.free)
        for lock in (self._lent, self.free):
            if not lock.locked():
                await lock.acquire()
                return lock.release
        either = self._lent, self.free
        waiting = [asyncio.ensure_future(lock.acquire()) for lock in either]
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
    for future, lock in zip(waiting, either, strict=True):
        if not future.done():
            future.cancel()
        elif not future.cancelled():
            lock.release()


TURN: ContextVar[Turn | None] = ContextVar("dicast_turn", default=None)
"""Turn of the active call in the current task; None if calls are not counted."""


@asynccontextmanager
async def resting() -> AsyncIterator[None]:
    """Return the current call's turn during the block, in a run whose chat models collect calls."""
    turn = TURN.get()
    free = None if turn is None else turn.free
    if turn is None or not isinstance(free, Permits):
        yield
        return
    turn.rest(free)
    try:
        yield
    except BaseException:
        turn.go_on(free)
        raise
    await turn.resume(free)


@contextmanager
def holding(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """Set *variable* to *value* during the block.

    An abandoned coroutine is discarded later, in another context, where there is no value to restore.
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


async def together(calls: Sequence[Awaitable[T]]) -> list[T]:
    """Return the results of *calls* in order. All calls are awaited at the same time, each in a separate turn.

    If a call raises, the other calls are cancelled and awaited, and its exception is raised.
    """

    async def awaited(call: Awaitable[T]) -> T:
        async with call_turn():
            return await call

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(awaited(call)) for call in calls]
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from several
    return [task.result() for task in tasks]


@asynccontextmanager
async def call_turn(given_up: Callable[[], None] | None = None) -> AsyncIterator[None]:
    """Wait for the turn of a nested call: no wait if the enclosing call does nothing but wait for it.

    :param given_up: is called if the wait is cancelled, before any request was sent.
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
