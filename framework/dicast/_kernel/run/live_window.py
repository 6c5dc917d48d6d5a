"""Main loop of a live source: subjects arrive when they are due, and may arrive again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from ..values import Due, Subject
from .window import Window


class LiveWindow(Window):
    """Window that judges the subjects of a live source."""

    live = True

    async def _arriving(self, subjects: AsyncIterator[Due]) -> AsyncIterator[Due]:
        """Yield the subjects of a live source; while it has none, record the finished subjects."""
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            while True:
                next_due = asyncio.ensure_future(anext(subjects, None))
                try:
                    await asyncio.sleep(0)
                    while not next_due.done():
                        await self._while_idle(next_due, stopping)
                    if (due := next_due.result()) is None:
                        return
                finally:
                    next_due.cancel()
                yield due
        finally:
            stopping.cancel()

    async def _while_idle(self, *waited: asyncio.Future[Any]) -> None:
        """Emit finished subjects, or wait for the next event."""
        self._end_if_asked()
        tasks = [job.task for job in self._window if job.task is not None][: 1 if self._ordered else None]
        if any(task.done() for task in tasks):
            await self._finish_first()
        elif not self._stream.idle:
            await self._flush()
        else:
            await asyncio.wait({*waited, *tasks}, return_when=asyncio.FIRST_COMPLETED)

    def _awaits(self, subject: Subject) -> bool:
        """Return True also while another verdict on *subject* is in progress."""
        key = (subject.kind, subject.id)
        return super()._awaits(subject) or any(
            (job.due.subject.kind, job.due.subject.id) == key for job in self._window
        )
