"""Handle of one worker process, for the main process.

A worker writes the number of its current call into shared memory, so that the main process knows which call killed it. The worker ends
with the main process, even if that is killed: only the main process holds the other end of a pipe (the *lifeline*), and the end of the pipe
sends the worker a signal.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import pickle
import signal
import struct
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import attrs

from dicast import PluginError

AHEAD_SECONDS = 0.05
"""Seconds of work that a worker has in its queue, so that it is busy while its answers are read."""

MOST = 256
"""The most calls in a worker's queue."""

LATE_SECONDS = 1.0
"""Seconds after a call's own timer until the main process kills the worker."""

GOODBYE_SECONDS = 1.0
"""Seconds that a worker without calls has to end before it is killed."""

HEADER = struct.Struct("<Q")
"""The length before each message; in shared memory the number of the current call, 0 between calls."""

_COMMAND = "import sys; sys.path[:] = {!r}; from dicast._processes.worker import main; main({}, {})"
_BUFFER = 2**26


@attrs.define(eq=False)
class WorkerCall:
    """One call of the metric with the number *slot* on the pickled *subject*, limited to *seconds*."""

    number: int
    slot: int
    subject: bytes
    seconds: float
    answer: asyncio.Future[object]
    tries: int = 0


@attrs.define(eq=False)
class Worker:
    """A worker process and its calls, in their order.

    *pace* is the mean time of a call in seconds. *progress* is the memory with the number of the current call, *lifeline* the end of the pipe whose
    closing ends the worker. *seen* is the newest number in *progress*, which it has had *since* then; *late* marks a worker killed for a late call.
    """

    process: asyncio.subprocess.Process
    progress: mmap.mmap
    lifeline: int
    refused: Sequence[str | None] = ()
    calls: dict[int, WorkerCall] = attrs.field(factory=dict)
    pace: float = AHEAD_SECONDS
    seen: int = 0
    since: float = 0.0
    late: bool = False

    @classmethod
    async def start(cls, setup: bytes) -> Worker:
        """Return a started worker that has loaded the metrics of *setup*; its *refused* has the reason for each metric that cannot be loaded.

        :raises PluginError: if the worker ends before that.
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
        except BaseException as error:
            await worker.close()
            if isinstance(error, asyncio.IncompleteReadError | ConnectionError):
                message = f"a worker process of dicast/processes did not start: it {worker.ending}"
                raise PluginError(message) from error
            raise
        return worker

    def send(self, message: bytes) -> None:
        """Write one message."""
        assert self.process.stdin is not None  # the process was started with pipes
        self.process.stdin.write(HEADER.pack(len(message)) + message)

    async def receive(self) -> Any:
        """Return the next message.

        :raises asyncio.IncompleteReadError: if the process has ended.
        """
        pipe = self.process.stdout
        assert pipe is not None  # as above
        (length,) = HEADER.unpack(await pipe.readexactly(HEADER.size))
        return pickle.loads(await pipe.readexactly(length))  # noqa: S301  # from our own process

    @property
    def capacity(self) -> int:
        """The number of calls that can be sent now; 0 while more calls are pending than half of the queue's best length."""
        depth = max(2, min(MOST, int(AHEAD_SECONDS / self.pace)))
        return depth - len(self.calls) if len(self.calls) <= depth // 2 else 0

    def send_calls(self, calls: Sequence[WorkerCall]) -> None:
        """Send *calls*; a subject that several calls share is sent once."""
        self.calls.update((call.number, call) for call in calls)
        self.send(pickle.dumps([(call.number, call.slot, call.subject) for call in calls]))

    def current_call(self) -> WorkerCall | None:
        """Return the current call of the worker, or the call during which it died."""
        return self.calls.get(HEADER.unpack_from(self.progress)[0])

    def end_if_late(self, now: float) -> None:
        """Kill the worker if a call exceeds the limit of its timer, which C code may ignore.

        If the worker has ended, kill the processes that its metrics forked: they hold the pipe whose end reports the worker's death.
        """
        if self.process.returncode is not None:
            self.kill()
            return
        call = self.current_call()
        number = call.number if call is not None else 0
        if number != self.seen:
            self.seen, self.since = number, now
        elif call is not None and now - self.since > call.seconds + LATE_SECONDS:
            self.late = True
            self.kill()

    def kill(self) -> None:
        """Kill the process, if it has not ended, and the processes that its metrics started."""
        with suppress(
            ProcessLookupError, PermissionError
        ):  # PermissionError: a group of another user, or a dead process on macOS
            os.killpg(self.process.pid, signal.SIGKILL)

    @property
    def ending(self) -> str:
        """Description of how the process ended."""
        return _ending(self.process.returncode)

    async def close(self) -> None:
        """End the process: gracefully if it has no calls, else at once."""
        process = self.process
        assert process.stdin is not None  # as above
        assert process.stdout is not None
        if self.calls:
            self.kill()
        process.stdin.close()
        try:
            async with asyncio.timeout(GOODBYE_SECONDS):  # wait_for may swallow the cancellation
                await process.wait()
        except TimeoutError:
            self.kill()
            await process.wait()
        self.kill()
        with suppress(ConnectionError):
            await process.stdout.read()
        os.close(self.lifeline)
        self.progress.close()


def _ending(code: int | None) -> str:
    if code is None or code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
