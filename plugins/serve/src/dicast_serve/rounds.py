"""Rounds: looks at the figures that all viewers of a ledger take at one moment, so that one answer is made for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic

from dicast import Head

SOONEST = 1.5
"""Seconds between the beginnings of two rounds, at the least."""

SHARE = 9
"""A round is followed by a pause of so many times what its answers have taken: a run that writes meanwhile needs the processor, too."""

_NOBODY = object()


class Rounds:
    """The rounds of one ledger, the last of which has a *name*; None before the first."""

    def __init__(self) -> None:
        self.name: str | None = None
        self._began, self._busy = float("-inf"), 0.0
        self._told: Head | object | None = _NOBODY
        self._head: asyncio.Task[Head | None] | None = None

    def begin(self, head: Head | None) -> str | None:
        """The name of the last round, which begins now where the ledger has come to another *head* since, and the pause is over."""
        if self._told is _NOBODY:  # who has just come has asked by himself
            self._told = head
        pause = max(SOONEST, (1 + SHARE) * self._busy)
        if head != self._told and monotonic() - self._began >= pause:
            self.name, self._told, self._head = _name(head), head, None
            self._began, self._busy = monotonic(), 0.0
        return self.name

    def took(self, seconds: float) -> None:
        """An answer has kept the processor for so long."""
        self._busy += seconds

    async def head(self, name: str | None, read: Callable[[], Awaitable[Head | None]]) -> Head | None:
        """The head that answers are made at: that of the round *name*, where it is the last one, else the newest."""
        if name is None or name != self.name:
            return await read()
        if self._head is None or _went_wrong(self._head):
            self._head = asyncio.ensure_future(read())
        return await asyncio.shield(self._head)


def _name(head: Head | None) -> str:
    """The name of the round that begins at *head*."""
    return "empty" if head is None else f"{head.seq}-{head.digest[:12]}"


def _went_wrong(task: asyncio.Task[Head | None]) -> bool:
    """Whether *task* has ended without a head: whoever asks next tries again."""
    return task.done() and (task.cancelled() or task.exception() is not None)
