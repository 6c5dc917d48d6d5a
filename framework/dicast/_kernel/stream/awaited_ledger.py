"""Ledgers whose methods are ``async def``: their event loop has a thread of its own, so all code can call them like other ledgers."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from ..contract.protocols import Ledger
from ..values import RunContext

T = TypeVar("T")

CLOSE_SECONDS = 10.0
"""Seconds to wait for the end of the thread of a ledger."""


class LoopThread:
    """A thread with an event loop."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start *work* in the thread, and return the future of its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of *work*, which runs in the thread."""
        return self.start(work).result()

    def close(self) -> None:
        """End the thread, with the tasks that are left in it."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.get_loop().run_forever()


@asynccontextmanager
async def open_awaited(component: Any, run: RunContext | None, **options: bool) -> AsyncIterator[AwaitedLedger]:
    """Open the ledger *component* in a thread of its own. This code never waits in the event loop of the caller, which may have none."""
    thread, ready, over = LoopThread(f"dicast ledger {type(component).__qualname__}"), Future[Any](), asyncio.Event()

    async def hold() -> None:
        try:
            async with component.open(run, **options) as live:
                ready.set_result(live)
                await over.wait()
        except Exception as error:
            if ready.done():
                raise
            ready.set_exception(error)

    async def end() -> None:
        over.set()

    try:
        holding = thread.start(hold())
        live = ready.result()
        try:
            yield AwaitedLedger(live, thread)
        finally:
            thread.call(end())
            holding.result()
    finally:
        thread.close()


class AwaitedLedger:
    """Live ledger whose ``async def`` methods are called like functions. Its members are members of *live*."""

    def __init__(self, live: Ledger, thread: LoopThread) -> None:
        self.live, self._thread = live, thread

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.live, name)
        return _Called(value, self._thread) if inspect.iscoroutinefunction(value) else value

    def start(self, name: str, *arguments: Any) -> Future[Any]:
        """Call the method *name* in the thread of the ledger, and return the future of its result."""
        return self._thread.start(_answer(getattr(self.live, name), arguments))


class _Called:
    """Function that waits for the result of an ``async def`` method."""

    def __init__(self, method: Any, thread: LoopThread) -> None:
        self._method, self._thread = method, thread

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._thread.call(self._method(*arguments, **named))


async def _answer(method: Any, arguments: tuple[Any, ...]) -> Any:
    answer = method(*arguments)
    return await answer if inspect.isawaitable(answer) else answer
