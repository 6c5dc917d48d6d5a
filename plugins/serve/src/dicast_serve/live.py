"""Live news of a ledger: a single reader for each ledger serves all its viewers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import islice
from time import monotonic
from typing import Any

import attrs
import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from dicast import Entry, Head, Ledger, LedgerError, Query
from dicast.reading import Spending, past_runs, read_digest

from .documents import dumped
from .guard import error_response
from .reading import ServedLedger
from .rounds import Rounds
from .runs import live_rows

SECONDS = 0.5
"""Pause between two reads of a ledger, in seconds."""

RUNNING_SECONDS = 3.0
"""Pause between two checks which runs are running, in seconds."""

RUNNING_RUNS = 20
"""Number of runs that are checked, the newest."""

QUIET_SECONDS = 15.0
"""Time without news after which a comment is sent, so that proxies keep the connection open."""

TOGETHER = 500
"""Most verdicts that are read and sent at once."""

VIEWERS = 600
"""Most streams that are open at the same time."""

WAITING = 20
"""Number of reads that a slow client may lag behind. Then it is disconnected, and reconnects after its last event."""

NEWEST = 30
"""Most verdicts of one read that brief viewers get."""

News = tuple[int, bytes]
"""A row of the chain and its event; row 0 means that every viewer gets the event."""

TYPES = ("eval.completed", "eval.failed")


class LedgerReplaced(LedgerError):
    """The ledger was replaced, or lost rows."""


@attrs.frozen
class NewsBatch:
    """The *news* after a row, and the *head* up to which they go; *has_more* is true if the ledger goes further."""

    news: Sequence[News]
    head: Head | None
    has_more: bool = False


@attrs.frozen
class Look:
    """The *news* of one read of the ledger, and their joined *text*, which all viewers share."""

    news: Sequence[News]
    text: bytes

    @classmethod
    def of(cls, news: Sequence[News]) -> Look:
        """Return the look with these *news*."""
        return cls(news, b"".join(text for _, text in news))

    @property
    def row(self) -> int:
        """The last row that a viewer has seen after these news."""
        return max(row for row, _ in self.news)

    def behind(self, seen: int) -> bytes:
        """Return the news after the row *seen*."""
        if self.news[0][0] > seen:
            return self.text
        return b"".join(text for row, text in self.news if row > seen or not row)


QUIET = Look.of([(0, b": quiet\n\n")])


NO_RUNS: frozenset[str] = frozenset()


class Running:
    """Running runs of one ledger. A run whose process is gone stops running although the ledger does not grow."""

    def __init__(self, ledger: ServedLedger) -> None:
        self._ledger = ledger
        self._run_ids = NO_RUNS
        self._head: Head | None = None
        self._checked = float("-inf")

    async def at(self, head: Head | None) -> frozenset[str]:
        """Return the ids of the running runs, at most :data:`RUNNING_SECONDS` old. Without a running run only a new *head* is a reason to check."""
        is_old = monotonic() - self._checked >= RUNNING_SECONDS
        if is_old and (self._run_ids or head != self._head):
            self._run_ids = await asyncio.to_thread(self._ledger.read, _running_ids)
            self._head, self._checked = head, monotonic()
        return self._run_ids


def _running_ids(ledger: Ledger) -> frozenset[str]:
    runs = past_runs(ledger, spending=lambda _ledger, _run_id: Spending())  # amounts do not matter here
    return frozenset(run["run_id"] for run in islice(runs, RUNNING_RUNS) if run["state"] == "running")


class Tail:
    """Reader of the end of one ledger, active while it has viewers. If *brief*, it sends only the newest verdicts of each read."""

    def __init__(self, ledger: ServedLedger, rounds: Rounds, *, brief: bool) -> None:
        self.ledger, self.brief = ledger, brief
        self._rounds, self._round = rounds, rounds.name
        self._viewers: set[asyncio.Queue[Look | None]] = set()
        self._task: asyncio.Task[None] | None = None
        self._last_head: Head | None = None
        self._running = Running(ledger)

    def join(self, head: Head | None) -> tuple[asyncio.Queue[Look | None], int]:
        """Return a queue of news and the row after which they start.

        The row is of the ledger's *head*, or the last row read if the tail has other viewers.
        """
        queue: asyncio.Queue[Look | None] = asyncio.Queue(WAITING)
        self._viewers.add(queue)
        if self._task is None or self._task.done():
            self._last_head = head
            self._task = asyncio.create_task(self._follow())
        return queue, _row(self._last_head)

    def leave(self, queue: asyncio.Queue[Look | None]) -> None:
        """Remove a viewer. The last viewer stops the reading."""
        self._viewers.discard(queue)
        if not self._viewers and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _follow(self) -> None:
        try:
            while self._viewers:
                batch = await asyncio.to_thread(newer, self.ledger, self._last_head, brief=self.brief)
                self._last_head = batch.head
                running = await self._running.at(batch.head) if self.brief else NO_RUNS
                if news := [*batch.news, *self._round_news(running)]:
                    look = Look.of(news)
                    for queue in list(self._viewers):
                        self._put(queue, look)
                if not batch.has_more:
                    await asyncio.sleep(SECONDS)
        except Exception as error:
            for queue in list(self._viewers):
                self._end(queue)
            if not isinstance(error, LedgerError):
                raise
            # else the answer to the reconnecting client reports the ledger's error

    def _round_news(self, running: frozenset[str]) -> list[News]:
        """Return the news that a round started, for brief viewers only."""
        if not self.brief or (name := self._rounds.begin(self._last_head, running)) == self._round or name is None:
            return []
        self._round = name
        return [(0, b"event: round\ndata: %b\n\n" % orjson.dumps({"name": name, "all": self._rounds.has_all}))]

    def _put(self, queue: asyncio.Queue[Look | None], look: Look) -> None:
        if queue.full():
            self._end(queue)
        else:
            queue.put_nowait(look)

    def _end(self, queue: asyncio.Queue[Look | None]) -> None:
        """Disconnect a viewer and drop its unsent news. The client reconnects after the last event it received."""
        self._viewers.discard(queue)
        while not queue.empty():
            queue.get_nowait()
        queue.put_nowait(None)


class Tails:
    """Tails of all ledgers, with their *rounds*."""

    def __init__(self, rounds: Callable[[ServedLedger], Rounds]) -> None:
        self._rounds = rounds
        self._tails: dict[tuple[ServedLedger, bool], Tail] = {}
        self.viewers = 0

    def of(self, ledger: ServedLedger, *, brief: bool) -> Tail:
        """Return the tail of *ledger*, complete or *brief*."""
        return self._tails.setdefault((ledger, brief), Tail(ledger, self._rounds(ledger), brief=brief))


def newer(ledger: ServedLedger, last_head: Head | None, *, brief: bool = False) -> NewsBatch:
    """Return the verdicts and failures after *last_head* as server-sent events. The last event reports a grown ledger.

    :raises AnotherLedger: when the ledger does not have the row of *last_head*.
    """
    return ledger.read(lambda live: _newer(live, last_head, brief=brief))


def _newer(ledger: Ledger, last_head: Head | None, *, brief: bool) -> NewsBatch:
    head = ledger.head()  # read first: later rows are news of the next read
    if head == last_head:
        return NewsBatch((), head)
    after = _row(last_head)
    if last_head is not None and read_digest(ledger, after) != last_head.digest:
        raise LedgerReplaced(f"the ledger has no row {last_head.seq} with the previous digest")
    entries = _entries(ledger, after, brief=brief)
    last = Head(entries[-1].seq, read_digest(ledger, entries[-1].seq) or "") if entries else None
    if not brief and len(entries) == TOGETHER:
        return NewsBatch(_news(entries), last, has_more=True)
    if head is None or (last is not None and last.seq > head.seq):
        head = last
    return NewsBatch([*_news(entries), *([_grown(head)] if head else [])], head)


def _entries(ledger: Ledger, after: int, *, brief: bool) -> Sequence[Entry]:
    """Return verdicts and failures after the row *after*: the first of them, or if *brief*, the newest."""
    if not brief:
        return list(ledger.read(Query(types=TYPES, after=after, limit=TOGETHER)))
    return list(ledger.read(Query(types=TYPES, after=after, limit=NEWEST, newest_first=True)))[::-1]


def _news(entries: Sequence[Entry]) -> list[News]:
    return [(row["seq"], _event(row)) for row in live_rows(entries)]


def _event(row: dict[str, Any]) -> bytes:
    kind = b"failure" if row["failed"] else b"verdict"
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (row["seq"], kind, dumped(row))


def _grown(head: Head) -> News:
    return head.seq, _head_event(head.seq, head.seq)


def _head_event(seen: int, newest: int) -> bytes:
    """Return the event with the ledger's length. A client that reconnects after it has seen all rows up to *seen*."""
    return b"id: %d\nevent: head\ndata: %b\n\n" % (seen, orjson.dumps({"seq": newest}))


def _row(head: Head | None) -> int:
    return 0 if head is None else head.seq


async def stream(tails: Tails, tail: Tail, request: Request, after: int | None) -> Response:
    """Return the stream of events from now on, or after the row in ``Last-Event-ID``, else after *after*."""
    if tails.viewers >= VIEWERS:
        return error_response(503, f"{VIEWERS} streams are open; close one")
    head = await asyncio.to_thread(tail.ledger.head)
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    if request.method == "HEAD":
        return Response(media_type="text/event-stream", headers=headers)
    last = request.headers.get("last-event-id", "")
    seen = int(last) if last.isascii() and last.isdecimal() and len(last) < 16 else after
    start = _row(head) if seen is None else min(seen, _row(head))
    return StreamingResponse(_event_stream(tails, tail, start, head), media_type="text/event-stream", headers=headers)


async def _event_stream(tails: Tails, tail: Tail, seen: int, head: Head | None) -> AsyncIterator[bytes]:
    tails.viewers += 1
    queue, start = tail.join(head)
    try:
        yield b"retry: 2000\n" + _head_event(seen, _row(head))
        while seen < start:
            missed, seen = await asyncio.to_thread(_missed, tail, seen, start)
            if missed:
                yield missed
        while (look := await _next(queue)) is not None:
            if text := look.behind(seen):
                seen = max(seen, look.row)
                yield text
    except LedgerError:
        return  # a started answer can only end; the reconnecting client gets the reason
    finally:
        tails.viewers -= 1
        tail.leave(queue)


def _missed(tail: Tail, seen: int, upto: int) -> tuple[bytes, int]:
    """Return verdicts and failures after the row *seen* and up to *upto*, and the last row covered."""

    def read(live: Ledger) -> tuple[bytes, int]:
        entries = _entries(live, seen, brief=tail.brief)
        last = entries[-1].seq if not tail.brief and len(entries) == TOGETHER else upto
        news = _news([entry for entry in entries if entry.seq <= upto])
        return b"".join(text for _, text in news), min(last, upto)

    return tail.ledger.read(read)


async def _next(queue: asyncio.Queue[Look | None]) -> Look | None:
    try:
        return await asyncio.wait_for(queue.get(), QUIET_SECONDS)
    except TimeoutError:
        return QUIET
