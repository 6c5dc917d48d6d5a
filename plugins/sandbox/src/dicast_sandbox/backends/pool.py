"""Pool of one run's sandboxes, with a limited number at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from dicast import Execution, Failure, Program

Run = Callable[[Program, int], Awaitable[Execution | Failure]]
"""Function that runs a program, and its peer, in a slot."""


class Pool:
    """Pool that runs *concurrency* programs at a time by *run*, each in a slot of its own: 0, 1, …"""

    def __init__(self, run: Run, concurrency: int) -> None:
        self._run = run
        self._slots: asyncio.LifoQueue[int] = asyncio.LifoQueue()
        for slot in reversed(range(concurrency)):
            self._slots.put_nowait(slot)

    async def execute(self, program: Program) -> Execution | Failure:
        """Run *program* as soon as a slot is free."""
        slot = await self._slots.get()
        try:
            return await self._run(program, slot)
        finally:
            self._slots.put_nowait(slot)
