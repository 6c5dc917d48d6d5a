"""One worker process, as the main process sees it.

It says in shared memory which call it is at, so that it is known whose fault its death is. It ends with this process, however
that ends: the end of a pipe that only this process holds is a signal to it.
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

from .._kernel.classes import define, field
from .._kernel.values.errors import PluginError

AHEAD_SECONDS = 0.05
"""How much work a worker is given ahead, so that it has something to do while its answers are read."""

MOST = 256
"""Calls that a worker is given ahead, at most."""

LATE_SECONDS = 1.0
"""How much later than its own timer a worker's call is ended from outside, by killing the worker."""

GOODBYE_SECONDS = 1.0
"""How long a worker that has nothing to do may take to end, before it is killed."""

HEADER = struct.Struct("<Q")
"""Before each message its length; in the shared memory the number of the call under way, 0 between calls."""

_COMMAND = "import sys; sys.path[:] = {!r}; from dicast._processes.worker import main; main({}, {})"
_BUFFER = 2**26


@define(eq=False)
class Asked:
    """One call: of the metric with the number *slot*, about the pickled *subject*, in *seconds*."""

    number: int
    slot: int
    subject: bytes
    seconds: float
    answer: asyncio.Future[object]
    tries: int = 0


@define(eq=False)
class Worker:
    """A worker process and the calls it was given, in their order. *pace* is the mean time of a call, in seconds."""

    process: asyncio.subprocess.Process
    progress: mmap.mmap
    lifeline: int
    refused: Sequence[str | None] = ()
    asked: dict[int, Asked] = field(factory=dict)
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
        except BaseException as error:
            await worker.close()
            if isinstance(error, asyncio.IncompleteReadError | ConnectionError):
                message = f"a worker process of dicast/processes did not start: it {worker.ending}"
                raise PluginError(message) from error
            raise
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
        """Kill the worker when a call takes longer than its timer there allows: code in C may not heed it.

        Of one that has ended kill what its metrics forked: it holds the pipe at whose end the worker's death is known.
        """
        if self.process.returncode is not None:
            self.kill()
            return
        asked = self.under_way()
        number = asked.number if asked is not None else 0
        if number != self.seen:
            self.seen, self.since = number, now
        elif asked is not None and now - self.since > asked.seconds + LATE_SECONDS:
            self.late = True
            self.kill()

    def kill(self) -> None:
        """End the process at once, if it has not ended, and what its metrics have started."""
        with suppress(ProcessLookupError, PermissionError):  # the latter for a group of others, on macOS for dead ones
            os.killpg(self.process.pid, signal.SIGKILL)

    @property
    def ending(self) -> str:
        """How the process has ended."""
        return _ending(self.process.returncode)

    async def close(self) -> None:
        """End the process: in order when it has nothing to do, else at once."""
        process = self.process
        assert process.stdin is not None  # as above
        assert process.stdout is not None
        if self.asked:
            self.kill()
        process.stdin.close()
        try:
            async with asyncio.timeout(GOODBYE_SECONDS):  # wait_for may swallow that the run has ended
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
