"""The processes that come of one, in whatever session they are."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

_VARIABLE = "DICAST_COMMAND"
_SWEEPS = 5


class ProcessTree:
    """All that comes of a process started with :attr:`env`: it is found by that variable, also where it has left the session.

    A process that clears its environment is not found, and nothing is where the system has no ``/proc``.
    """

    def __init__(self, mark: str | None = None) -> None:
        """*mark* is that of a tree which another process has started; a new one by default."""
        self.mark = mark or uuid.uuid4().hex

    @property
    def env(self) -> Mapping[str, str]:
        """The variable to start the process with. It names the trees that this process is in itself, too, so that those who end them
        end this one.
        """
        return {_VARIABLE: os.environ.get(_VARIABLE, "") + self.mark}

    def end(self) -> None:
        """Kill what is there of it, at once; again, for what was being started meanwhile."""
        for _ in range(_SWEEPS):
            found = [*_marked(self.mark.encode())]
            for pid in found:
                with suppress(ProcessLookupError, PermissionError):  # it has ended, or is somebody else now
                    os.kill(pid, signal.SIGKILL)
            if not found:
                return


def _marked(mark: bytes) -> Iterator[int]:
    folder = Path("/proc")
    for entry in folder.iterdir() if folder.is_dir() else ():
        if entry.name.isdecimal():
            with suppress(OSError):  # it has ended, or is somebody else's
                if mark in (entry / "environ").read_bytes():
                    yield int(entry.name)
