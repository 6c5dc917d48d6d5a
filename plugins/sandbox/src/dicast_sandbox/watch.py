"""Looks at what running sandboxes take that the kernel does not hold for all of a sandbox's processes together.

A process's own memory, CPU time and files are held by its resource limits, and files by the size of the sandbox's only file
system. The sums over the processes are looked at from outside, some twenty times a second.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs

from dicast import Limits

SECONDS = 0.05
"""How long between two looks; more where looking takes more than a twentieth of the time."""

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_OWN = 2  # bwrap's own two processes, around the program's
_ROLLUP = "Pss:"

Strike = Callable[[str], None]


@attrs.frozen
class Process:
    """What ``/proc/PID/stat`` says: *seconds* of CPU time with those of its ended children, *memory* in bytes."""

    parent: int
    threads: int
    seconds: float
    memory: int


class Watch:
    """Watches the sandboxes that are running, and tells each which limit it has struck."""

    def __init__(self) -> None:
        self._watched: dict[int, tuple[Limits, Strike]] = {}
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def watching(self, pid: int, limits: Limits, strike: Strike) -> Iterator[None]:
        """Watch *pid* and its descendants during the block; *strike* is told the limit's name, more than once perhaps."""
        self._watched[pid] = limits, strike
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look())
        try:
            yield
        finally:
            del self._watched[pid]

    async def _look(self) -> None:
        pause = SECONDS
        while self._watched:
            await asyncio.sleep(pause)
            if not self._watched:
                return
            begun = time.monotonic()
            self._look_once()
            pause = max(SECONDS, 20 * (time.monotonic() - begun))

    def _look_once(self) -> None:
        processes = dict(_processes())
        children: dict[int, list[int]] = {}
        for pid, process in processes.items():
            children.setdefault(process.parent, []).append(pid)
        for root, (limits, strike) in list(self._watched.items()):
            tree = {pid: processes[pid] for pid in _descendants(root, children) if pid in processes}
            struck = _struck(tree, limits)
            if struck is not None:
                strike(struck)


def _struck(tree: Mapping[int, Process], limits: Limits) -> str | None:
    if sum(process.threads for process in tree.values()) - _OWN >= limits.processes:
        return "processes"
    if sum(process.seconds for process in tree.values()) > limits.cpu:
        return "cpu"
    if sum(process.memory for process in tree.values()) > limits.memory:
        return "memory" if sum(_share(pid, process) for pid, process in tree.items()) > limits.memory else None
    return None


def _share(pid: int, process: Process) -> int:
    """The process's memory, where what it shares with others is divided among them."""
    with suppress(OSError):  # it has ended, or cannot be read: then all counts
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith(_ROLLUP):
                return int(line.split()[1]) * 1024
    return process.memory


def _descendants(root: int, children: Mapping[int, list[int]]) -> Iterator[int]:
    found = [root]
    while found:
        pid = found.pop()
        yield pid
        found += children.get(pid, ())


def _processes() -> Iterator[tuple[int, Process]]:
    for entry in os.listdir("/proc"):  # noqa: PTH208  # a Path a process costs as much as all else here
        if entry.isdecimal():
            with suppress(OSError), open(f"/proc/{entry}/stat", "rb") as file:  # noqa: PTH123  # as above
                yield int(entry), _parsed(file.read())


def _parsed(stat: bytes) -> Process:
    fields = stat[stat.rindex(b")") + 2 :].split()  # a name may hold anything
    ticks = sum(map(int, fields[11:15]))
    return Process(int(fields[1]), int(fields[17]), ticks / _TICKS, int(fields[21]) * _PAGE)
