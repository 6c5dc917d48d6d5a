"""``sandbox/bubblewrap``: programs in namespaces of their own."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import subprocess
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import cache
from math import inf
from pathlib import Path

import attrs

from dicast import ConfigError, Execution, Failure, Limits, Program, RunContext, Within

from .. import seccomp
from ..environment import check_environment
from ..pool import Pool
from ..process import await_fully
from . import reaper
from .arguments import bwrap_arguments, command_path, inspect_system
from .memory import open_memory_files
from .program import SandboxSettings
from .watch import Watch

UIDS = range(64_000, 65_000)
"""Whose rights sandboxes have where dicast runs as root: nobody's, of the range that is for such users."""

_SECONDS = 20
_INSTALL = "apt install bubblewrap (Debian, Ubuntu), dnf install bubblewrap (Fedora), apk add bubblewrap (Alpine)"
_UTIL_LINUX = "apt install util-linux"
_COMMANDS = {"bwrap": _INSTALL, "prlimit": _UTIL_LINUX, "taskset": _UTIL_LINUX, "setpriv": _UTIL_LINUX}
_OTHER = "or name another backend"
_PROBE = Program(("/bin/true",), Limits(_SECONDS, _SECONDS, 1, 1 << 30, 64, 1 << 20, 1 << 20, 1 << 20))


def _paths(paths: Iterable[str | Path]) -> tuple[Path, ...]:
    return tuple(map(Path, paths))


@attrs.frozen
class Bubblewrap:
    """Runs programs in Linux namespaces of their own, by bubblewrap (``bwrap``, 0.8 or newer).

    Inside there are the system's programs and libraries, read-only, an empty workspace, home and /tmp in memory, and no
    network. Nothing of it is left when the program ends, or dicast does.

    :param mounts: further directories of the host that can be read inside, under the same paths: compilers, packages.
    :param environment: further environment variables inside, by name.
    :param concurrency: how many programs run at the same time in a run, at most; by default one for each core.
    """

    name = "bubblewrap"

    mounts: tuple[Path, ...] = attrs.field(default=(), converter=_paths)
    environment: dict[str, str] = attrs.field(factory=dict, validator=check_environment)
    concurrency: int | None = attrs.field(
        default=None, validator=Within(1, inf, "1 or more"), metadata={"counts": False}
    )

    def check(self) -> None:
        """Try whether a sandbox can be made here.

        :raises ConfigError: when it cannot, or a mount is not there.
        """
        for path in self.mounts:
            if not path.exists():
                raise ConfigError(f"sandbox/bubblewrap: the mount {path} does not exist")
        _check(self.mounts)

    async def execute(self, program: Program) -> Execution | Failure:
        """Run *program* by itself, beside whatever pool there is."""
        return await self._settings().run(program, 0)

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Pool]:
        """The pool of one run's sandboxes."""
        settings = self._settings()
        async with _reaped(settings.mark):
            yield Pool(settings.run, self.concurrency or len(os.sched_getaffinity(0)))

    def _settings(self) -> SandboxSettings:
        return SandboxSettings(self.mounts, self.environment, _identity, Watch())


@asynccontextmanager
async def _reaped(mark: str) -> AsyncIterator[None]:
    """Have what has *mark* in its command ended with this process, also where it is killed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", reaper.__file__),
        stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True, cwd="/", env={},
    )  # fmt: skip
    assert process.stdin is not None  # it is a pipe
    process.stdin.write(mark.encode() + b"\n")
    try:
        yield
    finally:
        await await_fully(_dismiss(process, process.stdin))


async def _dismiss(process: Process, stdin: asyncio.StreamWriter) -> None:
    stdin.write(reaper.IN_ORDER)
    stdin.close()
    await process.wait()


@cache  # a success alone: each metric asks, and trying takes 20 ms; where the machine changes later, no sandbox can start and is a Failure
def _check(mounts: tuple[Path, ...]) -> None:
    if platform.system() != "Linux" or platform.machine() not in seccomp.supported_machines():
        machines = " or ".join(seccomp.supported_machines())
        this = f"{platform.system()} on {platform.machine()}"
        raise ConfigError(f"sandbox/bubblewrap works on Linux on {machines}, and this is {this}; name another backend")
    for command, install in _COMMANDS.items():
        if shutil.which(command) is None:
            raise ConfigError(f"sandbox/bubblewrap: {command} is not installed; {install}, {_OTHER}")
    machine = inspect_system()
    with open_memory_files() as files:
        words = bwrap_arguments(_PROBE, machine, mounts, {}, files, None)
        done = subprocess.run(  # noqa: S603  # fixed words, and mounts that the user names
            [*_identity(0), machine.bwrap, *words],
            pass_fds=files.descriptors, capture_output=True, encoding="utf-8", errors="replace", check=False, timeout=_SECONDS, cwd="/",
        )  # fmt: skip
    if done.returncode != 0:
        raise ConfigError(_advice(done.stderr.strip() or f"exit code {done.returncode}"))


def _identity(slot: int) -> tuple[str, ...]:
    """Root's sandboxes are other users': root's own limits of processes do not hold, and its files are too many.

    Those that run at the same time are not one user's, who has only so many inotify instances, pipes and file descriptors on
    their way. A command does it, because ``subprocess`` would have to fork, which takes long where dicast has much memory.
    """
    user = str(UIDS[slot % len(UIDS)])
    return (command_path("setpriv"), "--reuid", user, "--regid", user, "--clear-groups") if os.geteuid() == 0 else ()


def _advice(error: str) -> str:
    if "Unknown option" in error:
        why = f"bwrap is older than 0.8; {_INSTALL}"
    elif "mounts" in error or "Can't find source" in error or "bind" in error:
        why = "what is mounted has to be readable by others (where dicast is root, by users other than root)"
    else:
        why = (
            "user namespaces may be off here: set kernel.unprivileged_userns_clone=1, "
            "kernel.apparmor_restrict_unprivileged_userns=0 or user.max_user_namespaces by sysctl; in a container, allow them "
            "(docker: --security-opt seccomp=unconfined --security-opt systempaths=unconfined)"
        )
    return f"sandbox/bubblewrap cannot make a sandbox here ({error}): {why}, {_OTHER}"
