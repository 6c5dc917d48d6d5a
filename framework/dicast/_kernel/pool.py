"""Worker processes that metrics are asked in, and what becomes of a call whose worker dies.

Calls go to the workers in messages, as many as take about :data:`AHEAD_SECONDS`; a worker says in shared memory which one it
is at. So one that dies costs that call alone: the others it had are given to the next. A worker ends with this process,
however that ends: the end of a pipe that only this process holds is a signal to it.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import mmap
import os
import pickle
import signal
import struct
import sys
import tempfile
import time
from collections import deque
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from .components import parts
from .errors import PluginError
from .model import Failure, Subject
from .protocols import ChatModel, Judge
from .sections import Slot

if TYPE_CHECKING:
    from .runner.calls import Call, Caller, Elsewhere

AHEAD_SECONDS = 0.02
"""How much work a worker is given ahead, so that it has something to do while its answers are read."""

MOST = 256
"""Calls that a worker is given ahead, at most."""

TRIES = 3
"""How often a call is given to another worker because its own died at something else."""

LATE_SECONDS = 1.0
"""How much later than its own timer a worker's call is ended from outside, by killing the worker."""

GOODBYE_SECONDS = 1.0
"""How long a worker that has nothing to do may take to end, before it is killed."""

HEADER = struct.Struct("<Q")
"""Before each message its length; in the shared memory the number of the call under way, 0 between calls."""

_COMMAND = "import sys; sys.path[:] = {!r}; from dicast._kernel.worker import main; main({}, {})"
_BUFFER = 2**26


def kept(slot: Slot) -> str | None:
    """Why the metric of *slot* has to be asked in the main process; None when it can be sent to another."""
    component = slot.component
    inside = [part for part in parts(component) if attrs.has(type(part)) and part is not component]
    if slot.kind == "judge":
        return "it is a judge"
    if any(hasattr(part, "open") for part in (component, *inside)):
        return "it is opened once a run"
    if any(isinstance(part, ChatModel | Judge) for part in inside):
        return "it asks a model or a judge"
    if inspect.iscoroutinefunction(component.score):
        return "it waits (async def)"
    if hasattr(component, "score_batch"):
        return "it is asked for many subjects together"
    try:
        pickle.dumps(component)
    except Exception as error:  # the border: whatever a plugin's fields are
        return f"it cannot be pickled ({type(error).__name__}: {error})"
    return None


@attrs.define(eq=False)
class Asked:
    """One call: of the metric with the number *slot*, about the pickled *subject*, in *seconds*."""

    number: int
    slot: int
    subject: bytes
    seconds: float
    answer: asyncio.Future[object]
    tries: int = 0


@attrs.define(eq=False)
class Worker:
    """A worker process and the calls it was given, in their order. *pace* is the mean time of a call, in seconds."""

    process: asyncio.subprocess.Process
    progress: mmap.mmap
    lifeline: int
    refused: Sequence[str | None] = ()
    asked: dict[int, Asked] = attrs.field(factory=dict)
    pace: float = AHEAD_SECONDS
    seen: int = 0
    since: float = 0.0
    late: bool = False

    @classmethod
    async def start(cls, setup: bytes) -> Worker:
        """A worker that has loaded the metrics of *setup*, but for those *refused*.

        :raises PluginError: when it does not come so far.
        """
        ours, lifeline = os.pipe()
        with tempfile.TemporaryFile() as file:
            file.truncate(HEADER.size)
            command = _COMMAND.format(sys.path, ours, file.fileno())
            try:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-c", command),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    pass_fds=(ours, file.fileno()),
                    start_new_session=True,  # Ctrl-C is for the main process
                    limit=_BUFFER,
                )
            except BaseException:
                os.close(lifeline)
                raise
            finally:
                os.close(ours)
            worker = cls(process, mmap.mmap(file.fileno(), HEADER.size), lifeline)
        try:
            worker.send(setup)
            worker.refused = await worker.receive()
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            how = _ending(await process.wait())
            raise PluginError(f"a worker process of dicast/processes did not start: it {how}") from error
        return worker

    def send(self, message: bytes) -> None:
        """Write one message."""
        assert self.process.stdin is not None  # it was made with pipes
        self.process.stdin.write(HEADER.pack(len(message)) + message)

    async def receive(self) -> Any:
        """Read one message.

        :raises asyncio.IncompleteReadError: when the process has ended.
        """
        pipe = self.process.stdout
        assert pipe is not None  # as above
        (length,) = HEADER.unpack(await pipe.readexactly(HEADER.size))
        return pickle.loads(await pipe.readexactly(length))  # noqa: S301  # from our own process

    @property
    def room(self) -> int:
        """How many calls more it may be given now: none while it still has more than half of what is good."""
        depth = max(2, min(MOST, int(AHEAD_SECONDS / self.pace)))
        return depth - len(self.asked) if len(self.asked) <= depth // 2 else 0

    def give(self, calls: Sequence[Asked]) -> None:
        """Send *calls*; a subject that several of them are about is sent once."""
        self.asked.update((asked.number, asked) for asked in calls)
        self.send(pickle.dumps([(asked.number, asked.slot, asked.subject) for asked in calls]))

    def under_way(self) -> Asked | None:
        """The call that the worker is at, or died at."""
        return self.asked.get(HEADER.unpack_from(self.progress)[0])

    def end_if_late(self, now: float) -> None:
        """Kill the worker when a call takes longer than its timer there allows: code in C may not heed it."""
        asked = self.under_way()
        number = asked.number if asked is not None else 0
        if number != self.seen:
            self.seen, self.since = number, now
        elif asked is not None and now - self.since > asked.seconds + LATE_SECONDS:
            self.late = True
            self.process.kill()

    async def close(self) -> None:
        """End the process: in order when it has nothing to do, else at once."""
        process = self.process
        assert process.stdin is not None  # as above
        assert process.stdout is not None
        if process.returncode is None and self.asked:
            with suppress(ProcessLookupError):
                process.kill()
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), GOODBYE_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()
        with suppress(ConnectionError):
            await process.stdout.read()
        os.close(self.lifeline)
        self.progress.close()


class Pool:
    """As many workers as it is told, started with the first metric; each that dies is replaced."""

    def __init__(self, workers: int) -> None:
        self._count = workers
        self._setup = b""
        self._workers: list[Worker] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._queue: deque[Asked] = deque()
        self._feeding = False
        self._last = 0
        self._pickled: tuple[Subject, bytes] | None = None
        self._broken: str | None = None

    async def host(self, slots: Sequence[Slot]) -> Mapping[str, Elsewhere]:
        """Take those metrics of *slots* that can be sent, and that the workers can load; how to ask each one, by its path.

        :raises PluginError: when no worker can be started.
        """
        sent = [attrs.evolve(slot, options={}) for slot in slots if kept(slot) is None]
        if not sent:
            return {}
        self._setup = pickle.dumps([pickle.dumps(slot) for slot in sent])
        starting = [asyncio.create_task(self._start()) for _ in range(self._count)]
        try:
            await asyncio.gather(*starting)
        finally:
            await asyncio.gather(*starting, return_exceptions=True)
        self._tasks = [asyncio.create_task(self._keep(worker)) for worker in self._workers]
        self._tasks.append(asyncio.create_task(self._watch()))
        refused = self._workers[0].refused
        return {slot.path: partial(self.ask, number) for number, slot in enumerate(sent) if refused[number] is None}

    def ask(self, slot: int, caller: Caller, call: Call, subject: Subject) -> Awaitable[object]:
        """Ask the metric with the number *slot* in a worker; a subject that cannot be sent is judged here."""
        if self._pickled is None or self._pickled[0] is not subject:
            try:
                self._pickled = subject, pickle.dumps(subject)
            except Exception:  # whatever a program's own subjects hold; pickle nests less deep than JSON
                return caller.call(attrs.evolve(call, elsewhere=None), subject)
        self._last += 1
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        asked = Asked(self._last, slot, self._pickled[1], call.seconds, future)
        if self._broken is not None:
            _fail(asked, self._broken)
            return future
        self._queue.append(asked)
        if not self._feeding:
            self._feeding = True
            asyncio.get_running_loop().call_soon(self._feed)
        return future

    def _feed(self) -> None:
        """Share what waits among the workers that have room, those with the least to do first."""
        self._feeding = False
        free = sorted((worker for worker in self._workers if worker.room), key=lambda worker: len(worker.asked))
        for left, worker in zip(range(len(free), 0, -1), free, strict=True):
            share = min(worker.room, math.ceil(len(self._queue) / left))
            if share:
                worker.give([self._queue.popleft() for _ in range(share)])

    async def _start(self) -> Worker:
        worker = await Worker.start(self._setup)
        self._workers.append(worker)
        return worker

    async def _keep(self, worker: Worker) -> None:
        """Hear *worker*, and those that take its place when it dies."""
        while True:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                while True:
                    self._hear(worker, *await worker.receive())
            await worker.process.wait()
            self._workers.remove(worker)
            self._bury(worker)
            worker.asked.clear()
            await worker.close()
            try:
                worker = await self._start()
            except PluginError as error:
                if not self._workers:
                    self._give_up(str(error))
                return
            self._feed()

    def _hear(self, worker: Worker, answers: Sequence[tuple[int, object]], seconds: float) -> None:
        for number, answer in answers:
            future = worker.asked.pop(number).answer
            if future.done():
                continue
            if isinstance(answer, BaseException):
                future.set_exception(answer)
            else:
                future.set_result(answer)
        worker.pace = (worker.pace + max(seconds / len(answers), 1e-6)) / 2
        self._feed()

    def _bury(self, worker: Worker) -> None:
        """Answer for the call that *worker* died at; what it had not begun waits for another."""
        how = _ending(worker.process.returncode)
        culprit = worker.under_way()
        for asked in reversed(worker.asked.values()):
            asked.tries += 1
            if asked is culprit and worker.late:
                failure = Failure("timeout", f"no answer within {asked.seconds:g} s", retryable=True)
                _answer(asked, failure)
            elif asked is culprit:
                _fail(asked, f"its worker process {how}")
            elif asked.tries > TRIES:
                _fail(asked, f"its worker processes ended {asked.tries} times, the last one {how}")
            else:
                self._queue.appendleft(asked)

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
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(worker.close() for worker in self._workers))


def _answer(asked: Asked, answer: object) -> None:
    if not asked.answer.done():
        asked.answer.set_result(answer)


def _fail(asked: Asked, why: str) -> None:
    _answer(asked, Failure("crashed", why))


def _ending(code: int | None) -> str:
    if code is None or code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
