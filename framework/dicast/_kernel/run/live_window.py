"""The main loop of a live source: subjects come when they are due, and may come again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from ..values import Due, Subject
from .window import Window


class LiveWindow(Window):
    """Judges the subjects of a live source."""

    live = True

    async def _arriving(self, subjects: AsyncIterator[Due]) -> AsyncIterator[Due]:
        """What a live source yields; while it has nothing, what was judged is recorded."""
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            while True:
                coming = asyncio.ensure_future(anext(subjects, None))
                try:
                    await asyncio.sleep(0)
                    while not coming.done():
                        await self._while_idle(coming, stopping)
                    if (due := coming.result()) is None:
                        return
                finally:
                    coming.cancel()
                yield due
        finally:
            stopping.cancel()

    async def _while_idle(self, *waited: asyncio.Future[Any]) -> None:
        """Emit what is finished, or wait until there is something to do."""
        self._end_if_asked()
        tasks = [job.task for job in self._window if job.task is not None][: 1 if self._ordered else None]
        if any(task.done() for task in tasks):
            await self._finish_first()
        elif not self._stream.idle:
            await self._flush()
        else:
            await asyncio.wait({*waited, *tasks}, return_when=asyncio.FIRST_COMPLETED)

    def _awaits(self, subject: Subject) -> bool:
        """Also while another verdict on *subject* is under way."""
        key = (subject.kind, subject.id)
        return super()._awaits(subject) or any(
            (job.due.subject.kind, job.due.subject.id) == key for job in self._window
        )
