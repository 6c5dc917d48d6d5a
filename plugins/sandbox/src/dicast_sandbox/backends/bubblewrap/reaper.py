"""Process that ends the remaining sandboxes of a dicast process that was killed. It is run by its path.

bwrap ends with its parent, but not in the moments before it has asked the kernel to. Its first child does not end while it waits for
bwrap, so a child whose bwrap is killed at that time would never end. The processes to kill have a certain word in their command. The word is
the first line of stdin; stdin ends when dicast ends, with a note if dicast ended in order.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress

IN_ORDER = b"in order"
"""Note from dicast that it has ended its sandboxes itself: one check is enough."""

QUIET_SECONDS = 0.5
"""Time without any process after which the reaper ends; a process that is just starting is invisible for a moment."""

_SECONDS = 30
_PAUSE = 0.02


def main() -> None:
    """Wait for the end of dicast, and kill the remaining processes."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # signals sent to a whole session
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
    """Yield the ids of the processes with *mark* among the words of their command."""
    for entry in os.listdir("/proc"):  # noqa: PTH208  # as in watch.py
        if entry.isdecimal():
            with suppress(OSError), open(f"/proc/{entry}/cmdline", "rb") as file:  # noqa: PTH123  # as above
                if mark in file.read().split(b"\0"):
                    yield int(entry)


if __name__ == "__main__":
    main()
