"""Watch over resources that the kernel does not limit for all processes of a sandbox together.

Resource limits bound the memory, CPU time and files of a single process, and the size of the sandbox's file systems bounds the content of files.
The watch checks the sums over the processes from outside, about twenty times a second. It also checks the memory that the kernel
itself uses for a sandbox: page tables, sockets, terminals, and names of files.
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
"""Time between two checks; longer if checks would take more than a twentieth of the time."""

_TICKS, _PAGE = map(os.sysconf, ("SC_CLK_TCK", "SC_PAGE_SIZE")) if hasattr(os, "sysconf") else (0, 0)
"""Ticks per second and bytes of a page; 0 on Windows, which has no bubblewrap."""

_BWRAP_PROCESSES = 2  # bwrap's own two processes, around the program's
_ROLLUP = "Pss:"
_TABLES = "VmPTE:"
_TABLE_SHARE = 512  # a page of addresses takes at least eight bytes of page table once it is used
_SOCKET = 2 * 212_992  # default buffer size in both directions; seccomp lets no program raise it
_PTMX = 1  # an entry next to the terminals that creates them
_FILE = 1024  # approximate memory of a name in a file system, in addition to the file's content
_FILE_SYSTEMS = ("/tmp", "/dev/shm")  # noqa: S108  # inside: the writable file systems

Strike = Callable[[str], None]


@attrs.frozen
class Process:
    """Facts of ``/proc/PID/stat``: *seconds* of CPU time including ended children, *memory* and *addresses* in bytes."""

    parent: int
    threads: int
    seconds: float
    memory: int
    addresses: int


class Watch:
    """Watch over the running sandboxes that reports exceeded limits."""

    def __init__(self) -> None:
        self._watched: dict[int, tuple[Limits, Strike]] = {}
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def watching(self, pid: int, limits: Limits, strike: Strike) -> Iterator[None]:
        """Watch *pid* and its descendants during the block; call *strike* with the name of an exceeded limit, possibly several times."""
        self._watched[pid] = limits, strike
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            del self._watched[pid]

    async def _watch(self) -> None:
        pause = SECONDS
        while self._watched:
            await asyncio.sleep(pause)
            if not self._watched:
                return
            start = time.monotonic()
            self._check_once()
            pause = max(SECONDS, 20 * (time.monotonic() - start))

    def _check_once(self) -> None:
        processes = dict(_processes())
        children: dict[int, list[int]] = {}
        for pid, process in processes.items():
            children.setdefault(process.parent, []).append(pid)
        for root, (limits, strike) in list(self._watched.items()):
            tree = {pid: processes[pid] for pid in _descendants(root, children) if pid in processes}
            struck = _exceeded_limit(tree, limits) or _exceeded_kernel_limit(_program_process(root, children), limits)
            if struck is not None:
                strike(struck)


def _exceeded_limit(tree: Mapping[int, Process], limits: Limits) -> str | None:
    if sum(process.threads for process in tree.values()) - _BWRAP_PROCESSES >= limits.processes:
        return "processes"
    if sum(process.seconds for process in tree.values()) > limits.cpu:
        return "cpu"
    tables = _table_bytes(tree, limits)
    if tables + sum(process.memory for process in tree.values()) > limits.memory:
        shared = sum(_proportional_bytes(pid, process) for pid, process in tree.items())
        return "memory" if tables + shared > limits.memory else None
    return None


def _exceeded_kernel_limit(pid: int | None, limits: Limits) -> str | None:
    """Return the limit exceeded by the kernel's own memory for the sandbox of *pid*."""
    if pid is None:
        return None
    if _count_files(pid) * _FILE > limits.disk:
        return "disk"
    if _count_terminals(pid) > limits.processes:
        return "processes"
    return "memory" if _count_sockets(pid) * _SOCKET > limits.memory else None


def _program_process(root: int, children: Mapping[int, list[int]]) -> int | None:
    """Return a process of the program, below the two processes of bwrap; None before the sandbox exists, or after its end."""
    return next((pid for first in children.get(root, ()) for pid in children.get(first, ())), None)


def _count_files(pid: int) -> int:
    """Return the number of files, folders and links in the sandbox's own file systems."""
    count = 0
    for path in _FILE_SYSTEMS:
        with suppress(OSError):  # it has ended, or cannot be inspected
            counts = os.statvfs(f"/proc/{pid}/root{path}")
            count += counts.f_files - counts.f_ffree
    return count


def _count_terminals(pid: int) -> int:
    """Return the number of pseudo-terminals in the sandbox: all programs of a machine share a few thousand."""
    with suppress(OSError):
        return len(os.listdir(f"/proc/{pid}/root/dev/pts")) - _PTMX  # noqa: PTH208  # as below
    return 0


def _count_sockets(pid: int) -> int:
    """Return the number of sockets in the sandbox's network, including sockets that were never accepted."""
    with suppress(OSError), open(f"/proc/{pid}/net/sockstat", "rb") as file:  # noqa: PTH123  # as for stat
        return int(file.readline().split()[-1])
    return 0


def _table_bytes(tree: Mapping[int, Process], limits: Limits) -> int:
    """Return the size of the page tables in bytes; 0 if there are too few addresses for them to matter."""
    if sum(process.addresses for process in tree.values()) < limits.memory * _TABLE_SHARE // 4:
        return 0
    return sum(_kilobytes(f"/proc/{pid}/status", _TABLES) or 0 for pid in tree)


def _proportional_bytes(pid: int, process: Process) -> int:
    """Return the memory of the process, with shared memory divided among the processes that share it."""
    shared = _kilobytes(f"/proc/{pid}/smaps_rollup", _ROLLUP)
    return process.memory if shared is None else shared


def _kilobytes(path: str, name: str) -> int | None:
    """Return the value of the line *name* of a file in /proc, in bytes; None if the process has ended, or the file cannot be read."""
    with suppress(OSError):
        for line in Path(path).read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    return None


def _descendants(root: int, children: Mapping[int, list[int]]) -> Iterator[int]:
    pids = [root]
    while pids:
        pid = pids.pop()
        yield pid
        pids += children.get(pid, ())


def _processes() -> Iterator[tuple[int, Process]]:
    for entry in os.listdir("/proc"):  # noqa: PTH208  # a Path for each process would double the time
        if entry.isdecimal():
            with suppress(OSError), open(f"/proc/{entry}/stat", "rb") as file:  # noqa: PTH123  # as above
                yield int(entry), _parse_stat(file.read())


def _parse_stat(stat: bytes) -> Process:
    fields = stat[stat.rindex(b")") + 2 :].split()  # a name may hold anything
    ticks = sum(map(int, fields[11:15]))
    return Process(int(fields[1]), int(fields[17]), ticks / _TICKS, int(fields[21]) * _PAGE, int(fields[20]))
