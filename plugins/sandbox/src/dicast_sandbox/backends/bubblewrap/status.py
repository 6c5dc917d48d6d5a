"""What bwrap says of a sandbox, and when all of it is gone."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from contextlib import suppress

GONE_SECONDS = 30
"""How long the end of a sandbox that was killed is waited for."""

_BYTES = 1 << 16


class Status:
    """A pipe that bwrap writes JSON documents to: the sandbox's first process, then the command's exit code."""

    def __init__(self) -> None:
        self._read, self.write = os.pipe()
        os.set_blocking(self._read, False)
        self._numbers: dict[str, int] = {}

    def close(self) -> None:
        """Close both ends."""
        os.close(self._read)
        self.close_write_end()

    def close_write_end(self) -> None:
        """Close the end that is bwrap's, which has its own by now."""
        if self.write >= 0:
            os.close(self.write)
            self.write = -1

    @property
    def numbers(self) -> dict[str, int]:
        """All numbers that were told by now, by name."""
        with suppress(BlockingIOError):
            for line in os.read(self._read, _BYTES).splitlines():
                self._numbers |= json.loads(line)
        return self._numbers

    def kill(self) -> None:
        """Kill the sandbox's first process, and with it all others, unless it has ended.

        bwrap's end is its own end, too, but not between the moments when it has a session of its own and when it has said so.
        """
        first = self.numbers.get("child-pid")
        if first is not None and "exit-code" not in self.numbers:
            with suppress(ProcessLookupError):  # it has ended
                os.kill(first, signal.SIGKILL)

    async def wait_until_gone(self) -> None:
        """Wait until no process of the sandbox is left: the kernel ends its first process last."""
        first = self.numbers.get("child-pid")
        if first is None:
            return
        try:
            descriptor = os.pidfd_open(first)
        except ProcessLookupError:
            return
        loop, end = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(descriptor, end.set)
        try:
            async with asyncio.timeout(GONE_SECONDS):
                await end.wait()
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)
        _reap(first)


def _reap(pid: int) -> None:
    """Take note of the end of *pid*, whose parent has ended: where dicast is a container's first process, nobody else does."""
    with suppress(ChildProcessError):  # it is another's
        os.waitpid(pid, os.WNOHANG)
