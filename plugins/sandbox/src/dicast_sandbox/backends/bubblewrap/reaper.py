"""Ends what is left of the sandboxes of a dicast that was killed. Runs as a process of its own, by its path.

bwrap ends with its parent, but not in the moments before it has told the kernel so, and its first child not while it waits for
bwrap: one that was killed just then would never end. What is killed here is known by a word in its command. The word comes as
the first line of stdin; stdin ends when dicast has, and says so where that was in order.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress

IN_ORDER = b"in order"
"""What dicast says at its end when it has ended its sandboxes itself: one look is enough."""

QUIET_SECONDS = 0.5
"""For how long nothing may have been found otherwise: what is being started is not to be seen for a moment."""

_SECONDS = 30
_PAUSE = 0.02


def main() -> None:
    """Wait for the end of dicast, and end what is left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # those that a whole session is sent
        signal.signal(number, signal.SIG_IGN)
    mark = sys.stdin.buffer.readline().strip()
    if mark:
        reap(mark, 0 if sys.stdin.buffer.read() == IN_ORDER else QUIET_SECONDS)


def reap(mark: bytes, seconds: float) -> None:
    """Kill the processes with *mark* in their command, until there have been none for *seconds*."""
    now = time.monotonic()
    quiet, end = now + seconds, now + _SECONDS
    while now <= min(quiet, end):
        for pid in marked_processes(mark):
            quiet = now + QUIET_SECONDS
            with suppress(ProcessLookupError):  # it has ended
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE)
        now = time.monotonic()


def marked_processes(mark: bytes) -> Iterator[int]:
    """The processes with *mark* among the words of their command."""
    for entry in os.listdir("/proc"):  # noqa: PTH208  # as in watch.py
        if entry.isdecimal():
            with suppress(OSError), open(f"/proc/{entry}/cmdline", "rb") as file:  # noqa: PTH123  # as above
                if mark in file.read().split(b"\0"):
                    yield int(entry)


if __name__ == "__main__":
    main()
