"""Status reports of bwrap, and the end of a sandbox."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from contextlib import suppress

GONE_SECONDS = 30
"""Longest wait for the end of a killed sandbox."""

_BYTES = 1 << 16


class Status:
    """Pipe to which bwrap writes JSON documents: the sandbox's first process, then the command's exit code."""

    def __init__(self) -> None:
        self._read, self.write = os.pipe()
        os.set_blocking(self._read, False)
        self._numbers: dict[str, int] = {}

    def close(self) -> None:
        """Close both ends."""
        os.close(self._read)
        self.close_write_end()

    def close_write_end(self) -> None:
        """Close the write end, after bwrap has started with its own copy."""
        if self.write >= 0:
            os.close(self.write)
            self.write = -1

    @property
    def numbers(self) -> dict[str, int]:
        """Return all numbers reported so far, by name."""
        with suppress(BlockingIOError):
            for line in os.read(self._read, _BYTES).splitlines():
                self._numbers |= json.loads(line)
        return self._numbers

    def kill(self) -> None:
        """Kill the sandbox's first process, and with it all others, unless it has ended.

        Killing bwrap also ends it, except between the moments when it starts a session of its own and when bwrap reports it.
        """
        first = self.numbers.get("child-pid")
        if first is not None and "exit-code" not in self.numbers:
            with suppress(ProcessLookupError):  # it has ended
                os.kill(first, signal.SIGKILL)

    async def wait_until_gone(self) -> None:
        """Wait until no process of the sandbox is left; the kernel ends its first process last."""
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
    """Reap the process *pid*, whose parent has ended; necessary if dicast is the first process of a container."""
    with suppress(ChildProcessError):  # it has another parent
        os.waitpid(pid, os.WNOHANG)
