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
"""Users of sandboxes if dicast runs as root: unprivileged users, in the range reserved for them."""

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
    network. All of it is gone when the program ends, or dicast does.

    :param mounts: further directories of the host that are readable inside, under the same paths: compilers, packages.
    :param environment: further environment variables inside, by name.
    :param concurrency: the largest number of programs that run at the same time in a run; by default one for each core.
    """

    name = "bubblewrap"

    mounts: tuple[Path, ...] = attrs.field(default=(), converter=_paths)
    environment: dict[str, str] = attrs.field(factory=dict, validator=check_environment)
    concurrency: int | None = attrs.field(
        default=None, validator=Within(1, inf, "1 or more"), metadata={"counts": False}
    )

    def check(self) -> None:
        """Check that this machine can start a sandbox, by starting one.

        :raises ConfigError: if it cannot, or a mount does not exist.
        """
        for path in self.mounts:
            if not path.exists():
                raise ConfigError(f"sandbox/bubblewrap: the mount {path} does not exist")
        _check(self.mounts)

    async def execute(self, program: Program) -> Execution | Failure:
        """Run *program* outside any pool."""
        return await self._settings().run(program, 0)

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Pool]:
        """Open the pool of one run's sandboxes."""
        settings = self._settings()
        async with _reaped(settings.mark):
            yield Pool(settings.run, self.concurrency or len(os.sched_getaffinity(0)))

    def _settings(self) -> SandboxSettings:
        return SandboxSettings(self.mounts, self.environment, _identity, Watch())


@asynccontextmanager
async def _reaped(mark: str) -> AsyncIterator[None]:
    """End the processes with *mark* in their command when this process ends, even if it is killed."""
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


@cache  # caches success only: each metric checks, and a check takes 20 ms; if the machine changes later, the start is a Failure
def _check(mounts: tuple[Path, ...]) -> None:
    if platform.system() != "Linux" or platform.machine() not in seccomp.supported_machines():
        machines = " or ".join(seccomp.supported_machines())
        system_name = f"{platform.system()} on {platform.machine()}"
        raise ConfigError(
            f"sandbox/bubblewrap works on Linux on {machines}, and this is {system_name}; name another backend"
        )
    for command, install in _COMMANDS.items():
        if shutil.which(command) is None:
            raise ConfigError(f"sandbox/bubblewrap: {command} is not installed; {install}, {_OTHER}")
    machine = inspect_system()
    with open_memory_files() as files:
        words = bwrap_arguments(_PROBE, machine, mounts, {}, files, None)
        done = subprocess.run(  # noqa: S603  # fixed words, and mounts from the user
            [*_identity(0), machine.bwrap, *words],
            pass_fds=files.descriptors, capture_output=True, encoding="utf-8", errors="replace", check=False, timeout=_SECONDS, cwd="/",
        )  # fmt: skip
    if done.returncode != 0:
        raise ConfigError(_advice(done.stderr.strip() or f"exit code {done.returncode}"))


def _identity(slot: int) -> tuple[str, ...]:
    """Return the start of a command that changes the user, if dicast runs as root.

    Root's process limits have no effect, and root can read too many files. Sandboxes that run at the same time have different users,
    because a user has a limited number of inotify instances, pipes and file descriptors in transit. A command changes the user, because
    ``subprocess`` would have to fork, which is slow if dicast has much memory.
    """
    user = str(UIDS[slot % len(UIDS)])
    return (command_path("setpriv"), "--reuid", user, "--regid", user, "--clear-groups") if os.geteuid() == 0 else ()


def _advice(error: str) -> str:
    if "Unknown option" in error:
        reason = f"bwrap is older than 0.8; {_INSTALL}"
    elif "mounts" in error or "Can't find source" in error or "bind" in error:
        reason = "mounts have to be readable by others (if dicast is root, by users other than root)"
    else:
        reason = (
            "user namespaces may be off here: set kernel.unprivileged_userns_clone=1, "
            "kernel.apparmor_restrict_unprivileged_userns=0 or user.max_user_namespaces by sysctl; in a container, allow them "
            "(docker: --security-opt seccomp=unconfined --security-opt systempaths=unconfined)"
        )
    return f"sandbox/bubblewrap cannot make a sandbox here ({error}): {reason}, {_OTHER}"
