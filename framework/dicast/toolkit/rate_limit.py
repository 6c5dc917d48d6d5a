"""Limits of the calls to one endpoint."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TypeVar

from .._kernel.classes import define
from .._kernel.values import Cost, Failure
from .._kernel.values.endpoint_errors import EndpointUnreachable

T = TypeVar("T")


@define
class RequestTrace:
    """Requests of one call of a chat model: whether a limiter *paced* them, and whether a request was *cut* off before its answer.

    *spent* is the cost of requests without a usable reply. *waits* marks a call in a batch, whose reply outlives the process; *waited* is the
    number of seconds that the call waited for batches. *reserve* takes the cost of a try that exceeds the reservation and the cost of the
    previous tries, and reserves both; it returns a Failure if a cap has too little remaining budget.
    """

    paced: bool = False
    cut: bool = False
    spent: Cost = Cost.zero()
    waits: bool = False
    waited: float = 0.0
    reserve: Callable[[Cost, Cost], Awaitable[Failure | None]] | None = None


WIRE: ContextVar[RequestTrace | None] = ContextVar("dicast_wire", default=None)
"""The current call of a chat model in this asyncio task: a limiter records its requests there."""

WORKERS: ContextVar[int] = ContextVar("dicast_workers", default=1)
"""Number of processes that judge shards of the run at the same time: each has an equal share of the limits of an endpoint."""

SLOWER = 0.5
"""The share of calls in progress that an overloaded endpoint keeps."""

STARTS = 6
"""The most calls that begin in one round of the event loop. Replies to calls that begin together arrive together, and the endpoint is idle while
all of them are read."""


class RateLimiter:
    """A limiter that spaces calls evenly, by requests and tokens per minute, and allows fewer calls at a time after the endpoint was overloaded.

    The number of calls in progress is unlimited until :meth:`overloaded` is called. Then it is halved, at most once for the same calls
    in progress, and grows by one for each round of successful calls (AIMD, as in TCP's congestion control).
    """

    def __init__(self, requests_per_minute: float | None = None, tokens_per_minute: float | None = None) -> None:
        """Make a limiter; None is no limit. In a worker of a run it has the share of the worker."""
        self._requests = _Pace(requests_per_minute)
        self._tokens = _Pace(tokens_per_minute)
        self._active = 0
        self._limit: float | None = None
        self._held_until = 0.0
        self._calls = self._slowed_at = 0
        self._freed = asyncio.Condition()
        self._starts = asyncio.Semaphore(STARTS)

    @asynccontextmanager
    async def turn(self, tokens: int) -> AsyncIterator[int]:
        """Wait for the turn of a call that takes about *tokens*, and yield the number of the call, which runs in the block."""
        wire = WIRE.get() or RequestTrace()
        wire.paced = True
        if self._limit is not None:
            async with self._freed:
                await self._freed.wait_for(self._has_room)
        self._active += 1
        try:
            await self._requests.take(1)
            await self._tokens.take(tokens)
            while (wait := self._held_until - asyncio.get_running_loop().time()) > 0:  # noqa: ASYNC110  # it may grow
                await asyncio.sleep(wait)
            await self._starts.acquire()
            asyncio.get_running_loop().call_soon(self._starts.release)  # waiting calls begin in a later round
            self._calls += 1
            try:
                yield self._calls
            except asyncio.CancelledError:
                wire.cut = True
                raise
        finally:
            self._active -= 1
            if self._limit is not None:
                async with self._freed:
                    self._freed.notify_all()

    def overloaded(self, call: int, wait: float = 0.0) -> None:
        """Record that the endpoint was overloaded at the call with this number; no other call begins for *wait* seconds."""
        self._held_until = max(self._held_until, asyncio.get_running_loop().time() + wait)
        if call > self._slowed_at:
            self._limit = max(1.0, self._active * SLOWER)
            self._slowed_at = self._calls

    def spent(self, cost: Cost) -> None:
        """Record *cost*, the cost or its upper bound of a try of the current call without a usable reply. It counts even if the call is cancelled."""
        (WIRE.get() or RequestTrace()).spent += cost

    def eased(self) -> None:
        """Record that a call succeeded."""
        if self._limit is not None:
            self._limit += 1 / self._limit

    def _has_room(self) -> bool:
        return self._limit is None or self._active < int(self._limit)


class Reachability:
    """Guard that ends a run whose endpoint is dead, because every further subject would fail.

    A chat model or a task has a guard for each endpoint, and makes its calls through :meth:`watch`.
    """

    def __init__(self, at_start: int, later: int, *, model: str | None = None, url: str | None = None) -> None:
        """Make a guard that ends the run after *at_start* calls in a row without a connection, or after *later* calls once a call had a connection.

        *model* and *url* are in the message, *url* without its password, query and fragment.
        """
        self._at_start, self._later = at_start, later
        self._details = {"model": model, "url": url and re.sub(r"//[^/]*@", "//", re.split(r"[?#]", url)[0])}
        self._active = self._missed = 0
        self._waiting: set[asyncio.Future[None]] = set()
        self.reached = False

    @property
    def patient(self) -> bool:
        """True if a call without a connection should be tried again: not after a call gave up before the endpoint was ever reached."""
        return self.reached or not self._missed

    async def watch(self, call: Awaitable[tuple[T, bool]]) -> T:
        """Return the answer of *call*, whose second item is True if the endpoint was reached: any reply or HTTP status counts.

        Before the endpoint was ever reached, a Failure is held back until another call in progress reaches it or none remains. So
        subjects that are judged at the same time do not fail one by one for an endpoint that ends the run.

        :raises EndpointUnreachable: when too many calls in a row got no connection.
        """
        self._active += 1
        try:
            answer, reached = await call
            if reached:
                self.reached, self._missed = True, 0
            elif isinstance(answer, Failure):
                self._missed += 1
                await self._wait()
                self._refuse(answer)
            return answer
        finally:
            self._active -= 1
            self._release()

    async def _wait(self) -> None:
        """Return when the outcome of the calls in progress is known."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.add(waiting)
        self._release()
        try:
            await waiting
        finally:
            self._waiting.discard(waiting)

    def _release(self) -> None:
        if self.reached or self._missed >= self._at_start or len(self._waiting) >= self._active:
            for waiting in self._waiting:
                if not waiting.done():
                    waiting.set_result(None)

    def _refuse(self, last: Failure) -> None:
        if self._missed >= (self._later if self.reached else self._at_start):
            message = f"{self._missed} calls in a row got no connection; the last: {last.message}"
            raise EndpointUnreachable(message, last.cost, {**self._details, "calls": self._missed})


class _Pace:
    """Pace of amounts: the wait after each amount is amount / rate, in the order of the calls, so no amount is spent in advance."""

    def __init__(self, per_minute: float | None) -> None:
        self._seconds = 60.0 * WORKERS.get() / per_minute if per_minute else 0.0
        self._free_at = 0.0
        self._line = asyncio.Lock()

    async def take(self, amount: float) -> None:
        """Wait until *amount* may be sent. A cancelled wait takes nothing."""
        if not self._seconds:
            return
        async with self._line:
            now = asyncio.get_running_loop().time()
            if self._free_at > now:
                await asyncio.sleep(self._free_at - now)
            self._free_at = max(self._free_at, now) + amount * self._seconds
