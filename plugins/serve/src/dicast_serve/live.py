"""News of a ledger as it comes: one reader a ledger, however many look on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import attrs
import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from dicast import Entry, Head, Ledger, LedgerError, Query

from .documents import dumped
from .guard import error_response
from .reading import ServedLedger
from .rounds import Rounds
from .runs import live_rows

SECONDS = 0.5
"""Between two looks at a ledger."""

QUIET_SECONDS = 15.0
"""After so long without news a comment is sent, which keeps proxies from closing the connection."""

TOGETHER = 500
"""Verdicts that are read, and sent, at once."""

VIEWERS = 600
"""Streams that are open at the same time, at most."""

WAITING = 20
"""Looks at a ledger that a slow reader may be behind; then it is disconnected, and comes back where it was."""

NEWEST = 30
"""Verdicts of one look that are sent to whoever wants it brief."""

News = tuple[int, bytes]
"""A row of the chain, and what is sent about it; 0 where it is sent to everybody."""

TYPES = ("eval.completed", "eval.failed")


class AnotherLedger(LedgerError):
    """Where the ledger stood, another one stands now, or less of it."""


@attrs.frozen
class Found:
    """The *news* behind a row, and the *head* up to which they go; *more* says that it is not the ledger's own."""

    news: Sequence[News]
    head: Head | None
    more: bool = False


@attrs.frozen
class Look:
    """The *news* that a look has found, and as one text, which is made once for all who look on."""

    news: Sequence[News]
    whole: bytes

    @classmethod
    def of(cls, news: Sequence[News]) -> Look:
        """What has found *news*."""
        return cls(news, b"".join(text for _, text in news))

    @property
    def row(self) -> int:
        """How far in the ledger whoever has these has come."""
        return max(row for row, _ in self.news)

    def behind(self, seen: int) -> bytes:
        """The news behind the row *seen*."""
        if self.news[0][0] > seen:
            return self.whole
        return b"".join(text for row, text in self.news if row > seen or not row)


QUIET = Look.of([(0, b": quiet\n\n")])


class Tail:
    """The end of one ledger, read as long as anybody looks on; *brief*, it is the newest verdicts of each look alone."""

    def __init__(self, ledger: ServedLedger, rounds: Rounds, *, brief: bool) -> None:
        self.ledger, self.brief = ledger, brief
        self._rounds, self._round = rounds, rounds.name
        self._viewers: set[asyncio.Queue[Look | None]] = set()
        self._task: asyncio.Task[None] | None = None
        self._told: Head | None = None

    def join(self, head: Head | None) -> tuple[asyncio.Queue[Look | None], int]:
        """A queue of what comes after a row, and that row: the ledger's *head*, or where the reading has come to that goes on already."""
        queue: asyncio.Queue[Look | None] = asyncio.Queue(WAITING)
        self._viewers.add(queue)
        if self._task is None or self._task.done():
            self._told = head
            self._task = asyncio.create_task(self._follow())
        return queue, _row(self._told)

    def leave(self, queue: asyncio.Queue[Look | None]) -> None:
        """Look on no more."""
        self._viewers.discard(queue)
        if not self._viewers and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _follow(self) -> None:
        try:
            while self._viewers:
                found = await asyncio.to_thread(newer, self.ledger, self._told, brief=self.brief)
                self._told = found.head
                if news := [*found.news, *self._begun()]:
                    look = Look.of(news)
                    for queue in list(self._viewers):
                        self._put(queue, look)
                if not found.more:
                    await asyncio.sleep(SECONDS)
        except Exception as error:
            for queue in list(self._viewers):
                self._end(queue)
            if not isinstance(error, LedgerError):
                raise
            # else whoever comes back is answered what is wrong with the ledger

    def _begun(self) -> list[News]:
        """That a round has begun, for those who want no more news than they can show."""
        if not self.brief or (name := self._rounds.begin(self._told)) == self._round or name is None:
            return []
        self._round = name
        return [(0, b"event: round\ndata: %b\n\n" % orjson.dumps({"name": name}))]

    def _put(self, queue: asyncio.Queue[Look | None], look: Look) -> None:
        if queue.full():
            self._end(queue)
        else:
            queue.put_nowait(look)

    def _end(self, queue: asyncio.Queue[Look | None]) -> None:
        """Let a viewer go. What it was not told yet is dropped whole: it comes back after the last that it was told."""
        self._viewers.discard(queue)
        while not queue.empty():
            queue.get_nowait()
        queue.put_nowait(None)


class Tails:
    """The ends of all ledgers, with their *rounds*."""

    def __init__(self, rounds: Callable[[ServedLedger], Rounds]) -> None:
        self._rounds = rounds
        self._tails: dict[tuple[ServedLedger, bool], Tail] = {}
        self.viewers = 0

    def of(self, ledger: ServedLedger, *, brief: bool) -> Tail:
        """The end of *ledger*, in whole or *brief*."""
        return self._tails.setdefault((ledger, brief), Tail(ledger, self._rounds(ledger), brief=brief))


def newer(ledger: ServedLedger, told: Head | None, *, brief: bool = False) -> Found:
    """The verdicts and failures behind the row *told*, as they are sent; last a word that the ledger has grown, where it has.

    :raises AnotherLedger: when the ledger does not have that row.
    """
    return ledger.read(lambda live: _newer(live, told, brief=brief))


def _newer(ledger: Ledger, told: Head | None, *, brief: bool) -> Found:
    head = ledger.head()  # first: what comes meanwhile is found the next time
    if head == told:
        return Found((), head)
    after = _row(told)
    if told is not None:
        row = next(iter(ledger.read(Query(after=after - 1, limit=1))), None)
        if row is None or (row.seq, row.digest) != (told.seq, told.digest):
            raise AnotherLedger(f"the ledger has no row {told.seq} of the digest that it had")
    entries = _entries(ledger, after, brief=brief)
    last = _head(entries[-1]) if entries else None
    if not brief and len(entries) == TOGETHER:
        return Found(_news(entries), last, more=True)
    if head is None or (last is not None and last.seq > head.seq):
        head = last
    return Found([*_news(entries), *([_grown(head)] if head else [])], head)


def _entries(ledger: Ledger, after: int, *, brief: bool) -> Sequence[Entry]:
    """Verdicts and failures behind the row *after*, the first of them; or *brief*, the newest."""
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
    """How far the ledger goes; who comes back after it has seen all up to the row *seen*."""
    return b"id: %d\nevent: head\ndata: %b\n\n" % (seen, orjson.dumps({"seq": newest}))


def _head(entry: Entry) -> Head:
    return Head(entry.seq, entry.digest)


def _row(head: Head | None) -> int:
    return 0 if head is None else head.seq


async def stream(tails: Tails, tail: Tail, request: Request, after: int | None) -> Response:
    """What comes from now on, or after the row that ``Last-Event-ID`` names, or else *after*."""
    if tails.viewers >= VIEWERS:
        return error_response(503, f"{VIEWERS} streams are open; close one")
    head = await asyncio.to_thread(tail.ledger.head)
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    if request.method == "HEAD":
        return Response(media_type="text/event-stream", headers=headers)
    last = request.headers.get("last-event-id", "")
    seen = int(last) if last.isascii() and last.isdecimal() and len(last) < 16 else after
    start = _row(head) if seen is None else min(seen, _row(head))
    return StreamingResponse(_told(tails, tail, start, head), media_type="text/event-stream", headers=headers)


async def _told(tails: Tails, tail: Tail, seen: int, head: Head | None) -> AsyncIterator[bytes]:
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
        return  # the answer has begun: it can only end; whoever comes back is told the reason
    finally:
        tails.viewers -= 1
        tail.leave(queue)


def _missed(tail: Tail, seen: int, upto: int) -> tuple[bytes, int]:
    """Verdicts and failures behind the row *seen*, none behind *upto*, and the row that they go to."""

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
