"""Stages of a run with batches: the collected calls of chat models are sent as soon as the rest of the run waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from ..timing.turns import Permits

QUIET_SECONDS = 0.1
"""Seconds without progress after which a stage counts as complete. A judge needs a moment between a reply and its next call."""

MAX_COLLECTED = 50_000
"""Largest number of subjects in progress in a run whose chat models collect calls; the largest batches of current endpoints have as many items."""


class Collecting(Protocol):
    """A live chat model that collects calls and answers them in batches."""

    async def send_collected(self) -> None:
        """Send the pending calls, and return when all of them are answered. Errors go to the calls."""
        ...


class Stage:
    """Sender of the calls that chat models collected.

    A stage is complete when no call is in progress or waits for its turn, and the main loop reads no further subject: then only
    batches can let the run continue.
    """

    def __init__(self, models: Sequence[Collecting], permits: Permits) -> None:
        self._models, self._permits = models, permits
        self._blocked = asyncio.Event()
        self._sending: set[asyncio.Task[None]] = set()
        self._watching = asyncio.create_task(self._watch())
        self._error: BaseException | None = None

    @contextmanager
    def reader_waits(self) -> Iterator[None]:
        """Record that the main loop reads nothing while the block waits for a subject's verdicts."""
        self._blocked.set()
        try:
            yield
        finally:
            self._blocked.clear()

    def check(self) -> None:
        """Raise the exception with which a model ended instead of answering its calls."""
        if self._error is not None:
            raise self._error

    async def quiet(self) -> None:
        """Return when no call has been in progress for a moment."""
        while True:
            await self._permits.idle.wait()
            granted = self._permits.granted
            await asyncio.sleep(QUIET_SECONDS)
            if self._permits.idle.is_set() and granted == self._permits.granted:
                return

    async def close(self) -> None:
        """Stop. Batches that were sent continue at the endpoint."""
        tasks = [self._watching, *self._sending]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self) -> None:
        while True:
            await self._blocked.wait()
            await self.quiet()
            if self._blocked.is_set():
                self._send()
                await self._permits.busy.wait()

    def _send(self) -> None:
        for model in self._models:
            task = asyncio.create_task(model.send_collected())
            self._sending.add(task)
            task.add_done_callback(self._sent)

    def _sent(self, task: asyncio.Task[None]) -> None:
        self._sending.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._error = error
