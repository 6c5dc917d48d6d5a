"""How many calls are under way at once: a jury's, and those of a judge that asks several times, count against ``concurrency``."""

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
    """The turns of a run whose chat models collect calls: a call that only waits gives its turn back meanwhile.

    *granted* counts the turns that were ever given; *idle* is set while nobody has one, *busy* while somebody has.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.granted = self._taken = self._owed = 0
        self.idle, self.busy = asyncio.Event(), asyncio.Event()
        self.idle.set()

    async def acquire(self) -> Literal[True]:
        """Wait for a turn, and take it."""
        await super().acquire()
        self.granted += 1
        self._taken += 1
        self.idle.clear()
        self.busy.set()
        return True

    def release(self) -> None:
        """Give a turn back."""
        if self._owed:
            self._owed -= 1
            return
        self._taken -= 1
        if not self._taken:
            self.busy.clear()
            self.idle.set()
        super().release()

    def owe(self) -> None:
        """Go on without a turn that was given back: the next release gives nothing back."""
        self._owed += 1


class Turn:
    """The right to have one call under way. While its holder waits for a call inside, that call has it.

    In a run whose chat models collect calls it is the holder's only while nothing inside goes on or rests: the first call inside takes it over,
    the last one hands it back, and whatever rests lets others have it.
    """

    def __init__(self, free: asyncio.Semaphore) -> None:
        self.free = free
        self._lent = asyncio.Lock()
        self._inside = 0

    def rest(self, free: Permits) -> None:
        """Let others have the turn."""
        self._inside += 1
        if self._inside == 1:
            free.release()

    async def resume(self, free: Permits) -> None:
        """End the rest once the turn can be had again, or while something inside goes on."""
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
        """Wait until this turn is not lent, or another one is free, and return what gives it back."""
        if isinstance(self.free, Permits):
            return await self._enter(self.free)
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


@asynccontextmanager
async def resting() -> AsyncIterator[None]:
    """Let others have the current call's turn while the block waits, in a run whose chat models collect calls."""
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


async def together(calls: Sequence[Awaitable[T]]) -> list[T]:
    """Return the results of *calls* in order. All calls are awaited at the same time, each in a separate turn.

    When one of them raises, the others are cancelled and waited for, and its exception is raised.
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
