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
    """A process started with :attr:`env`, and its descendants. They are found by this variable, even if they left the session.

    A process that clears its environment is not found. Without ``/proc`` (macOS, Windows) no process is found.
    """

    def __init__(self, mark: str | None = None) -> None:
        """Take the *mark* of a tree that another process started; by default make a new one."""
        self.mark = mark or uuid.uuid4().hex

    @property
    def env(self) -> Mapping[str, str]:
        """The variable with which to start the process. It also has the marks of the trees of this process, whose owners can then end
        the new process.
        """
        return {_VARIABLE: os.environ.get(_VARIABLE, "") + self.mark}

    @staticmethod
    def end_session(leader: int) -> None:
        """Kill the session of the process *leader*; on Windows, which has no sessions, kill *leader* alone."""
        with suppress(ProcessLookupError, PermissionError):  # all its processes have ended
            if hasattr(os, "killpg"):
                os.killpg(leader, signal.SIGKILL)
            else:
                os.kill(leader, signal.SIGTERM)  # Windows ends the process at once

    def end(self) -> None:
        """Kill the processes of the tree, and then processes that were started meanwhile."""
        for _ in range(_SWEEPS):
            processes = [*_marked(self.mark.encode())]
            for pid in processes:
                with suppress(ProcessLookupError, PermissionError):  # it has ended, or another user has its number now
                    os.kill(pid, signal.SIGKILL)
            if not processes:
                return


def _marked(mark: bytes) -> Iterator[int]:
    folder = Path("/proc")
    for entry in folder.iterdir() if folder.is_dir() else ():
        if entry.name.isdecimal():
            with suppress(OSError):  # it has ended, or belongs to another user
                if mark in (entry / "environ").read_bytes():
                    yield int(entry.name)


class Adoption:
    """The orphans that this process adopts from now on, in any session and with any environment.

    Linux makes the nearest subreaper, which this process becomes, their parent. On other systems there are none, and :meth:`end` kills nothing.
    """

    def __init__(self) -> None:
        self._before: set[int] | None = _children(os.getpid()) if _become_subreaper() else None

    def end(self, started: int) -> None:
        """Kill every new child of this process with its descendants, and reap it, except the process *started*, which its owner reaps."""
        if self._before is None:
            return
        rest = {*self._before, started}
        while children := _children(os.getpid()) - rest:
            for pid in children:
                if not _kill_down(pid):
                    rest.add(pid)
                    continue
                with suppress(ChildProcessError):  # another thread has reaped it
                    os.waitpid(pid, 0)


def _become_subreaper() -> bool:
    """Make this process the parent of its descendants' orphans; return whether the system allowed it."""
    if sys.platform != "linux":
        return False
    try:
        import ctypes  # some builds of Python lack it, and only this call needs it

        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False


def _kill_down(pid: int) -> bool:
    """Stop *pid*, so that it starts no further process, then kill it and its descendants; return whether this was permitted."""
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
