"""Distribution of calls over worker processes, in messages of several calls, and recovery of calls whose worker dies.

A dead worker fails only its current call: its other calls go to another worker.
"""

from __future__ import annotations

import asyncio
import math
import pickle
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

import attrs

from dicast import Failure, PluginError, Subject
from dicast.metric_calls import CallerInRun, CallInRun, Slot, reason_to_stay
from dicast.toolkit.files import error_reason

from .process import LATE_SECONDS, Worker, WorkerCall

Ask = Callable[[CallerInRun, CallInRun, Subject], Awaitable[object]]
"""Function that has a call made in a worker."""

TRIES = 3
"""The most workers that a call moves to because its worker died between calls."""


class Pool:
    """A fixed number of workers, started with the first metric; a worker that dies is replaced."""

    def __init__(self, workers: int) -> None:
        self._count = workers
        self._setup = b""
        self._workers: list[Worker] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._queue: deque[WorkerCall] = deque()
        self._feeding = False
        self._last = 0
        self._pickled: tuple[Subject, bytes] | None = None
        self._broken: str | None = None
        self._closed = False

    async def host(self, slots: Sequence[Slot]) -> Mapping[str, Ask]:
        """Take over the metrics of *slots* that can be pickled and that the workers can load; return a function that calls each of them, by its path.

        :raises PluginError: if no worker can be started.
        """
        sent = [attrs.evolve(slot, options={}) for slot in slots if reason_to_stay(slot) is None]
        if not sent:
            return {}
        self._setup = pickle.dumps([pickle.dumps(slot) for slot in sent])
        starting = [asyncio.create_task(self._start()) for _ in range(self._count)]
        try:
            await asyncio.gather(*starting)
        finally:
            await asyncio.gather(*starting, return_exceptions=True)
        self._tasks = [asyncio.create_task(self._serve(worker)) for worker in self._workers]
        self._tasks.append(asyncio.create_task(self._watch()))
        refused = self._workers[0].refused
        return {slot.path: partial(self.ask, number) for number, slot in enumerate(sent) if refused[number] is None}

    def ask(self, slot: int, caller: CallerInRun, call: CallInRun, subject: Subject) -> Awaitable[object]:
        """Return an awaitable answer of the metric with the number *slot*, called in a worker. A subject that cannot be pickled is judged in this process."""
        if self._pickled is None or self._pickled[0] is not subject:
            try:
                self._pickled = subject, pickle.dumps(subject)
            except Exception:  # a program's subjects may hold anything; pickle nests less deep than JSON
                return caller.call(call.here(), subject)
        self._last += 1
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        worker_call = WorkerCall(self._last, slot, self._pickled[1], call.seconds, future)
        if self._broken is not None:
            _fail(worker_call, self._broken)
            return future
        self._queue.append(worker_call)
        if not self._feeding:
            self._feeding = True
            asyncio.get_running_loop().call_soon(self._feed)
        return future

    def _feed(self) -> None:
        """Distribute waiting calls over workers with free capacity, the least busy workers first."""
        self._feeding = False
        free = sorted((worker for worker in self._workers if worker.capacity), key=lambda worker: len(worker.calls))
        for remaining, worker in zip(range(len(free), 0, -1), free, strict=True):
            share = min(worker.capacity, math.ceil(len(self._queue) / remaining))
            if share:
                worker.send_calls([self._queue.popleft() for _ in range(share)])

    async def _start(self) -> Worker:
        try:
            worker = await Worker.start(self._setup)
        except OSError as error:
            raise PluginError(
                f"a worker process of dicast/processes could not be started: {error_reason(error)}"
            ) from error
        self._workers.append(worker)
        return worker

    async def _serve(self, worker: Worker) -> None:
        """Receive answers from *worker*, and from its replacements when it dies, as long as the pool is open."""
        while not self._closed:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                await self._listen(worker)
            await worker.process.wait()
            self._workers.remove(worker)
            self._recover_calls(worker)
            worker.calls.clear()
            await worker.close()
            try:
                worker = await self._start()
            except PluginError as error:
                if not self._workers:
                    self._give_up(str(error))
                return
            self._feed()

    async def _listen(self, worker: Worker) -> None:
        """Receive answers until the worker ends; kill a worker whose answers cannot be read."""
        while True:
            try:
                message = await worker.receive()
            except (asyncio.IncompleteReadError, ConnectionError):
                raise
            except Exception:  # the border: evidence may be of a class that cannot be unpickled
                worker.kill()
                continue
            self._receive(worker, *message)

    def _receive(self, worker: Worker, answers: Sequence[tuple[int, object]], seconds: float) -> None:
        for number, answer in answers:
            future = worker.calls.pop(number).answer
            if future.done():
                continue
            if isinstance(answer, BaseException):
                future.set_exception(answer)
            else:
                future.set_result(answer)
        worker.pace = (worker.pace + max(seconds / len(answers), 1e-6)) / 2
        self._feed()

    def _recover_calls(self, worker: Worker) -> None:
        """Answer the call during which *worker* died; queue its other calls for another worker."""
        how = worker.ending
        culprit = worker.current_call()
        for call in reversed(worker.calls.values()):
            call.tries += culprit is None
            if call is culprit and worker.late:
                failure = Failure("timeout", f"no answer within {call.seconds:g} s", retryable=True)
                _answer(call, failure)
            elif call is culprit:
                _fail(call, f"its worker process {how}")
            elif call.tries > TRIES:
                _fail(call, f"its worker process {how}, like {TRIES} before it, and was at no call")
            else:
                self._queue.appendleft(call)

    def _give_up(self, why: str) -> None:
        self._broken = why
        while self._queue:
            _fail(self._queue.popleft(), why)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LATE_SECONDS / 4)
            for worker in self._workers:
                worker.end_if_late(time.monotonic())

    async def close(self) -> None:
        """End every worker."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(worker.close() for worker in self._workers))


def _answer(call: WorkerCall, answer: object) -> None:
    if not call.answer.done():
        call.answer.set_result(answer)


def _fail(call: WorkerCall, why: str) -> None:
    _answer(call, Failure("crashed", why))
