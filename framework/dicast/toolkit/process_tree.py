"""The descendants of a process, in any session."""

from __future__ import annotations

import os
import signal
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

_VARIABLE = "DICAST_COMMAND"
_SWEEPS = 5
_PR_SET_CHILD_SUBREAPER = 36


class ProcessTree:
    """All that comes of a process started with :attr:`env`: it is found by that variable, also where it has left the session.

    A process that clears its environment is not found, and nothing is where the system has no ``/proc`` (macOS, Windows).
    """

    def __init__(self, mark: str | None = None) -> None:
        """*mark* is that of a tree which another process has started; a new one by default."""
        self.mark = mark or uuid.uuid4().hex

    @property
    def env(self) -> Mapping[str, str]:
        """The variable to start the process with. It also names the trees that this process belongs to, so that their owners can end
        the new process.
        """
        return {_VARIABLE: os.environ.get(_VARIABLE, "") + self.mark}

    @staticmethod
    def end_session(leader: int) -> None:
        """Kill the session of the process *leader*; where the system has no sessions (Windows), *leader* alone."""
        with suppress(ProcessLookupError, PermissionError):  # all of them have ended
            if hasattr(os, "killpg"):
                os.killpg(leader, signal.SIGKILL)
            else:
                os.kill(leader, signal.SIGTERM)  # Windows ends the process at once

    def end(self) -> None:
        """Kill the processes of the tree at once, and then processes that were being started meanwhile."""
        for _ in range(_SWEEPS):
            processes = [*_marked(self.mark.encode())]
            for pid in processes:
                with suppress(ProcessLookupError, PermissionError):  # it has ended, or is somebody else now
                    os.kill(pid, signal.SIGKILL)
            if not processes:
                return


def _marked(mark: bytes) -> Iterator[int]:
    folder = Path("/proc")
    for entry in folder.iterdir() if folder.is_dir() else ():
        if entry.name.isdecimal():
            with suppress(OSError):  # it has ended, or is somebody else's
                if mark in (entry / "environ").read_bytes():
                    yield int(entry.name)


class Adoption:
    """The orphans that this process adopts from now on, of any session and environment.

    Linux gives them to the nearest subreaper, which this process becomes. Elsewhere there are none, and :meth:`end` kills nothing.
    """

    def __init__(self) -> None:
        self._before: set[int] | None = _children(os.getpid()) if _become_subreaper() else None

    def end(self, started: int) -> None:
        """Kill every new child of this process with its descendants, and reap the orphans; *started* is reaped by its owner."""
        if self._before is None:
            return
        rest = {*self._before, started}
        while children := _children(os.getpid()) - rest:
            for pid in children:
                if not _kill_down(pid):
                    rest.add(pid)
                    continue
                with suppress(ChildProcessError):  # somebody else has reaped it
                    os.waitpid(pid, 0)


def _become_subreaper() -> bool:
    """Make this process the parent of its descendants' orphans; return whether the system did."""
    if sys.platform != "linux":
        return False
    try:
        import ctypes  # some builds of Python lack it, and only this call needs it

        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False


def _kill_down(pid: int) -> bool:
    """Stop *pid*, so that it starts nothing more, kill it and then its descendants; return whether that was permitted."""
    try:
        os.kill(pid, signal.SIGSTOP)
        below = _children(pid)
        os.kill(pid, signal.SIGKILL)
    except PermissionError:
        return False
    except ProcessLookupError:
        return True
    for child in below:
        _kill_down(child)
    return True


def _children(pid: int) -> set[int]:
    children: set[int] = set()
    with suppress(OSError):  # it has ended, or the kernel has no such list
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                children |= set(map(int, (task / "children").read_text().split()))
    return children
