"""The first call of a run, which shows which parameters the endpoint accepts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

FIRST_SECONDS = 5.0
"""The most seconds for which other calls wait for the answer to the first call."""


class FirstCall:
    """Gate that sends the first request of a run alone until it is answered, at most for :data:`FIRST_SECONDS`.

    A refused parameter is then refused once, and not in each of the calls that start together. Likewise a reasoning model returns one
    empty reply, which costs money, and not several. The fixed part of the prompt is in the endpoint's cache when the other calls start.
    """

    def __init__(self) -> None:
        self._answered: asyncio.Event | None = None

    async def before(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the result of *ask*, which is called when the first request has been answered, or at once if it is the first."""
        if self._answered is not None:
            if not self._answered.is_set():
                await self._answered.wait()
            return await ask()
        self._answered = asyncio.Event()
        timer = asyncio.get_running_loop().call_later(FIRST_SECONDS, self._answered.set)
        try:
            return await ask()
        finally:
            timer.cancel()
            self._answered.set()
