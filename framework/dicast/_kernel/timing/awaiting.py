"""Time limit of an awaited component, which may also block the event loop or ignore its cancellation."""

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
"""Seconds for which a component may continue after its cancellation."""

LATE_SECONDS = 0.05
"""Delay of the event loop, in seconds, above which a component has blocked it."""


_LIMITS: ContextVar[tuple[Limit, ...]] = ContextVar("dicast_limits", default=())
"""The limits of the components around the active call, the outermost first."""


class TimeUp(Exception):
    """Raised if an awaited answer does not come in time; the message has details to append to the report."""


async def within(timer: Timer, answer: Awaitable[object], seconds: float) -> object:
    """Return the result of *answer* if it comes within *seconds*.

    :raises TimeUp: if it takes longer.
    :raises Overtime: if it blocks the event loop for longer.
    """
    limit = Limit(seconds)
    try:
        with holding(_LIMITS, (*_LIMITS.get(), limit)):
            result = await Steps(answer, timer, limit)
    except asyncio.CancelledError:
        if not limit.expired or limit.end():  # cancelled by other code, perhaps in addition to the limit
            raise
    finally:
        limit.end()
    if limit.expired:
        raise TimeUp("; it ignored its cancellation and was given up" if limit.given_up else "")
    return result


@contextmanager
def unlimited() -> Iterator[None]:
    """Pause the time limits of all enclosing components while the block waits."""
    limits = _LIMITS.get()
    for limit in limits:
        limit.pause()
    try:
        yield
    finally:
        for limit in limits:
            limit.resume()


class Limit:
    """Time limit of the current task. It cancels the task when the time is over, and again as long as the task continues.

    If another component blocked the event loop when the time ended, the limit is extended once by the blocked time: an answer that
    arrives in this extension counts.
    """

    def __init__(self, seconds: float) -> None:
        task = asyncio.current_task()
        assert task is not None  # components are awaited in tasks
        self.expired = self.given_up = self._extended = False
        self._task, self._cancels_before = task, task.cancelling()
        self._cancellations, self._cancelled_since, self._blocked_until = 0, 0.0, 0.0
        self._pauses, self._left, self._is_ended = 0, 0.0, False
        self.until = time.monotonic() + seconds
        self._check_after(seconds)

    def pause(self) -> None:
        """Stop the clock until :meth:`resume` has been called as often as this method."""
        self._pauses += 1
        if self._pauses == 1:
            self._left, self.until = max(0.0, self.until - time.monotonic()), inf
            self._timer.cancel()

    def resume(self) -> None:
        """Continue with the remaining time."""
        self._pauses -= 1
        if not self._pauses:
            self.until = time.monotonic() + self._left
            if not self._is_ended:
                self._check_after(self._left)

    def _check_after(self, seconds: float) -> None:
        self._due = time.monotonic() + seconds
        self._timer = asyncio.get_running_loop().call_later(seconds, self._check)

    def _check(self) -> None:
        now = time.monotonic()
        if not self._extended and now - self._due > LATE_SECONDS and self._blocked_until < self._due:
            self._extended = True
            self._check_after(max(now - self._due, INSIST_SECONDS))
        elif now < self.until and not self._cancelled_since:  # it ended after its cancellation
            self._check_after(self.until - now)
        else:
            self.expired = True
            self._cancellations += 1
            self._task.cancel()
            self._check_after(INSIST_SECONDS)

    def end_step(self, start: float) -> None:
        """Note the end of a step of the component that started at *start*."""
        now = time.monotonic()
        if now - start > LATE_SECONDS:
            self._blocked_until = now
            self.expired = self.expired or now > self.until

    def is_ignored(self) -> bool:
        """Return whether the component continues for too long after its cancellation. A timeout that the component sets itself does not count."""
        if self._task.cancelling() <= self._cancels_before:
            self._cancelled_since = 0.0
            return False
        now = time.monotonic()
        if not self._cancelled_since:
            self._cancelled_since = now
            if now + GIVE_UP_SECONDS < self.until:
                self._timer.cancel()
                self._check_after(GIVE_UP_SECONDS)
        self.given_up = now - self._cancelled_since >= GIVE_UP_SECONDS
        return self.given_up

    def end(self) -> bool:
        """Stop cancelling the task; return True if other code has cancelled it too."""
        self._is_ended = True
        self._timer.cancel()
        while self._cancellations:
            self._cancellations -= 1
            self._task.uncancel()
        return self._task.cancelling() > self._cancels_before


class Steps:
    """Awaits *answer* step by step; *timer* ends a step that blocks the event loop beyond *limit*.

    A component that ignores its cancellation is abandoned: it is never resumed.
    """

    def __init__(self, answer: Awaitable[object], timer: Timer, limit: Limit) -> None:
        self._answer, self._timer, self._limit = answer, timer, limit

    def __await__(self) -> Generator[Any, Any, object]:
        limit, steps = self._limit, self._answer.__await__()
        step: Any = steps.send
        sent: Any = None
        while True:
            start = time.monotonic()
            try:
                seconds_left = max(limit.until - start, INSIST_SECONDS)
                waited = self._timer.patiently(step, sent, seconds_left, INSIST_SECONDS)
            except StopIteration as end:
                return end.value
            finally:
                limit.end_step(start)
            if limit.is_ignored():
                if waited is not None:
                    waited.cancel()
                raise asyncio.CancelledError
            try:
                step, sent = steps.send, (yield waited)
            except BaseException as error:  # the component handles it
                step, sent = steps.throw, error
