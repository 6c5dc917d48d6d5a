"""New verdicts as they come: one reader a ledger, however many look on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from dicast import Query, read_ledger

from .documents import dumped
from .guard import error_response
from .runs import live_rows

SECONDS = 0.5
"""Between two looks at a ledger."""

QUIET_SECONDS = 15.0
"""After so long without news a comment is sent, which keeps proxies from closing the connection."""

TOGETHER = 500
"""Verdicts that are read, and sent, at once."""

VIEWERS = 600
"""Streams that are open at the same time, at most."""

WAITING = 1_000
"""Pieces of news that a slow reader may be behind; then it is disconnected, and comes back where it was."""

News = tuple[int, bytes]


class Tail:
    """The end of one ledger, read as long as anybody looks on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._viewers: set[asyncio.Queue[News | None]] = set()
        self._task: asyncio.Task[None] | None = None

    def join(self, after: int) -> asyncio.Queue[News | None]:
        """A queue of what comes after the row *after*."""
        queue: asyncio.Queue[News | None] = asyncio.Queue(WAITING)
        self._viewers.add(queue)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._follow(after))
        return queue

    def leave(self, queue: asyncio.Queue[News | None]) -> None:
        """Look on no more."""
        self._viewers.discard(queue)
        if not self._viewers and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _follow(self, after: int) -> None:
        while self._viewers:
            found = await asyncio.to_thread(newer, self._path, after)
            for news in found:
                after = max(after, news[0])
                for queue in list(self._viewers):
                    self._put(queue, news)
            if len(found) < TOGETHER:
                await asyncio.sleep(SECONDS)

    def _put(self, queue: asyncio.Queue[News | None], news: News) -> None:
        if queue.full():
            self._viewers.discard(queue)
            queue.get_nowait()
            queue.put_nowait(None)
        else:
            queue.put_nowait(news)


class Tails:
    """The ends of all ledgers."""

    def __init__(self) -> None:
        self._tails: dict[Path, Tail] = {}
        self.viewers = 0

    def of(self, path: Path) -> Tail:
        """The end of the ledger at *path*."""
        return self._tails.setdefault(path, Tail(path))


def newer(path: Path, after: int) -> list[News]:
    """The verdicts and failures behind the row *after*, as they are sent."""
    query = Query(types=("eval.completed", "eval.failed"), after=after, limit=TOGETHER)
    rows: Sequence[dict[str, Any]] = read_ledger(path, lambda live: live_rows(list(live.read(query))))
    return [(row["seq"], _event(row)) for row in rows]


def _event(row: dict[str, Any]) -> bytes:
    kind = b"failure" if row["failed"] else b"verdict"
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (row["seq"], kind, dumped(row))


async def stream(tails: Tails, path: Path, request: Request) -> Response:
    """What comes from now on, or after the row that ``Last-Event-ID`` names."""
    if tails.viewers >= VIEWERS:
        return error_response(503, f"{VIEWERS} streams are open; close one")
    newest = await asyncio.to_thread(lambda: read_ledger(path, lambda live: live.head()))
    now = 0 if newest is None else newest.seq
    last = request.headers.get("last-event-id", "")
    seen = int(last) if last.isascii() and last.isdecimal() and len(last) < 16 else now
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(_told(tails, path, min(seen, now), now), media_type="text/event-stream", headers=headers)


async def _told(tails: Tails, path: Path, seen: int, now: int) -> AsyncIterator[bytes]:
    tail = tails.of(path)
    tails.viewers += 1
    queue = tail.join(now)
    try:
        yield b"retry: 2000\nevent: head\ndata: %b\n\n" % orjson.dumps({"seq": now})
        while seen < now:
            missed = [news for news in await asyncio.to_thread(newer, path, seen) if news[0] <= now]
            for _, text in missed:
                yield text
            if not missed:
                break
            seen = missed[-1][0]  # how far the viewer is
        seen = now
        while True:
            try:
                news = await asyncio.wait_for(queue.get(), QUIET_SECONDS)
            except TimeoutError:
                yield b": quiet\n\n"
                continue
            if news is None:
                return
            if news[0] > seen:
                seen = news[0]
                yield news[1]
    finally:
        tails.viewers -= 1
        tail.leave(queue)
