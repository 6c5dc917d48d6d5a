"""Rounds: moments at which all viewers of a ledger refresh their figures, so that they share one answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic

from dicast import Head

SOONEST = 1.5
"""Least number of seconds between the starts of two rounds."""

SHARE = 9
"""Pause after a round, as a multiple of its answers' time. A run that writes meanwhile needs the processor, too."""

_NOBODY = object()


class Rounds:
    """Rounds of one ledger. *name* is the last round's, None before the first."""

    def __init__(self) -> None:
        self.name: str | None = None
        self._began, self._busy = float("-inf"), 0.0
        self._last_head: Head | object | None = _NOBODY
        self._head: asyncio.Task[Head | None] | None = None

    def begin(self, head: Head | None) -> str | None:
        """Return the name of the last round. A new round starts if *head* has changed since and the pause is over."""
        if self._last_head is _NOBODY:  # a new viewer has just made its own requests
            self._last_head = head
        pause = max(SOONEST, (1 + SHARE) * self._busy)
        if head != self._last_head and monotonic() - self._began >= pause:
            self.name, self._last_head, self._head = _name(head), head, None
            self._began, self._busy = monotonic(), 0.0
        return self.name

    def add_busy_time(self, seconds: float) -> None:
        """Add the *seconds* that an answer kept the processor busy."""
        self._busy += seconds

    async def head(self, name: str | None, read: Callable[[], Awaitable[Head | None]]) -> Head | None:
        """Return the head of answers: the head of the round *name* if it is the last one, else the newest."""
        if name is None or name != self.name:
            return await read()
        if self._head is None or _went_wrong(self._head):
            self._head = asyncio.ensure_future(read())
        return await asyncio.shield(self._head)


def _name(head: Head | None) -> str:
    """Return the name of the round that starts at *head*."""
    return "empty" if head is None else f"{head.seq}-{head.digest[:12]}"


def _went_wrong(task: asyncio.Task[Head | None]) -> bool:
    """Return whether *task* ended without a head. The next request then tries again."""
    return task.done() and (task.cancelled() or task.exception() is not None)
