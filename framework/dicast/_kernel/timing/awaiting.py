"""Awaiting a component in its time, also one that keeps the event loop to itself, or ignores that it was cancelled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from typing import Any

from .timer import INSIST_SECONDS, Timer
from .turns import holding

GIVE_UP_SECONDS = 2.0
"""How long a component may go on after it was cancelled."""

LATE_SECONDS = 0.05
"""When the event loop comes round later than this, somebody has kept it."""


_LIMITS: ContextVar[tuple[Limit, ...]] = ContextVar("dicast_limits", default=())
"""The limits of the components around the active call, the outermost first."""


class TimeUp(Exception):
    """An awaited answer did not come in time; the message says what more there is to say."""


async def within(timer: Timer, answer: Awaitable[object], seconds: float) -> object:
    """What was awaited in its time.

    :raises TimeUp: when it took longer.
    :raises Overtime: when it kept the event loop for longer than that.
    """
    limit = Limit(seconds)
    try:
        with holding(_LIMITS, (*_LIMITS.get(), limit)):
            found = await Steps(answer, timer, limit)
    except asyncio.CancelledError:
        if not limit.expired or limit.end():  # not the limit has cancelled it, or not alone
            raise
    finally:
        limit.end()
    if limit.expired:
        raise TimeUp("; it ignored its cancellation and was given up" if limit.given_up else "")
    return found


@contextmanager
def unlimited() -> Iterator[None]:
    """Let the time of no component around run while the block waits."""
    limits = _LIMITS.get()
    for limit in limits:
        limit.pause()
    try:
        yield
    finally:
        for limit in limits:
            limit.go_on()


class Limit:
    """Cancels the current task when its time is over, and again while it goes on.

    A time that ended while another component kept the event loop is longer, once, by what that took: what is there by now counts.
    """

    def __init__(self, seconds: float) -> None:
        task = asyncio.current_task()
        assert task is not None  # components are awaited in tasks
        self.expired = self.given_up = self._extended = False
        self._task, self._before = task, task.cancelling()
        self._sent, self._since, self._kept = 0, 0.0, 0.0
        self._pauses, self._left, self._ended = 0, 0.0, False
        self.until = time.monotonic() + seconds
        self._look_in(seconds)

    def pause(self) -> None:
        """Stop the time, which is over at no moment until :meth:`go_on` is called as often."""
        self._pauses += 1
        if self._pauses == 1:
            self._left, self.until = max(0.0, self.until - time.monotonic()), inf
            self._timer.cancel()

    def go_on(self) -> None:
        """Continue with the remaining time."""
        self._pauses -= 1
        if not self._pauses:
            self.until = time.monotonic() + self._left
            if not self._ended:
                self._look_in(self._left)

    def _look_in(self, seconds: float) -> None:
        self._due = time.monotonic() + seconds
        self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        now = time.monotonic()
        if not self._extended and now - self._due > LATE_SECONDS and self._kept < self._due:
            self._extended = True
            self._look_in(max(now - self._due, INSIST_SECONDS))
        elif now < self.until and not self._since:  # it has ended after its cancellation
            self._look_in(self.until - now)
        else:
            self.expired = True
            self._sent += 1
            self._task.cancel()
            self._look_in(INSIST_SECONDS)

    def took(self, began: float) -> None:
        """A step of the component that *began* then is over."""
        now = time.monotonic()
        if now - began > LATE_SECONDS:
            self._kept = now
            self.expired = self.expired or now > self.until

    def is_ignored(self) -> bool:
        """Whether the component has gone on for too long after it was cancelled. By a timeout of its own is another matter."""
        if self._task.cancelling() <= self._before:
            self._since = 0.0
            return False
        now = time.monotonic()
        if not self._since:
            self._since = now
            if now + GIVE_UP_SECONDS < self.until:
                self._timer.cancel()
                self._look_in(GIVE_UP_SECONDS)
        self.given_up = now - self._since >= GIVE_UP_SECONDS
        return self.given_up

    def end(self) -> bool:
        """Cancel no more; return whether the task was cancelled by others, too."""
        self._ended = True
        self._timer.cancel()
        while self._sent:
            self._sent -= 1
            self._task.uncancel()
        return self._task.cancelling() > self._before


class Steps:
    """Awaits *answer*, step by step: one that keeps the event loop beyond its *limit* is ended by *timer*.

    A component that ignores its cancellation is given up: nobody resumes it any more.
    """

    def __init__(self, answer: Awaitable[object], timer: Timer, limit: Limit) -> None:
        self._answer, self._timer, self._limit = answer, timer, limit

    def __await__(self) -> Generator[Any, Any, object]:
        limit, steps = self._limit, self._answer.__await__()
        step: Any = steps.send
        given: Any = None
        while True:
            began = time.monotonic()
            try:
                left = max(limit.until - began, INSIST_SECONDS)
                waited = self._timer.patiently(step, given, left, INSIST_SECONDS)
            except StopIteration as end:
                return end.value
            finally:
                limit.took(began)
            if limit.is_ignored():
                if waited is not None:
                    waited.cancel()
                raise asyncio.CancelledError
            try:
                step, given = steps.send, (yield waited)
            except BaseException as error:  # for the component to handle
                step, given = steps.throw, error
