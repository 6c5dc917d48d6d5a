"""Arguments of bwrap: the files and variables inside a sandbox, and its limits."""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from dicast import Program

from .. import seccomp
from ..environment import HOME, WORKSPACE
from .memory import MemoryFiles

_PATH = "/usr/local/bin:/usr/bin:/bin"
_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_NEEDED = ("/etc/alternatives", "/etc/ld.so.cache")
_ACCOUNTS = {
    "/etc/passwd": f"sandbox:x:1000:1000::{HOME}:/bin/sh\n",
    "/etc/group": "sandbox:x:1000:\n",
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
}
_SHARED_MEMORY = 64 * 1024**2
_OPEN_FILES = 1024
_ARCHIVE = "/tmp/.template.tar"  # noqa: S108  # inside
_COLLECT = 'wanted=$1; shift; "$@"; code=$?; [ -f "$wanted" ] && cat -- "$wanted" 1<>{box} 2>/dev/null; exit $code'
_UNPACK = f"tar -xf {_ARCHIVE} --no-same-owner --skip-old-files && rm {_ARCHIVE}"
_FIRST = 1  # bwrap's first process inside counts too
_HARD = 1  # seconds between SIGXCPU, which identifies the limit, and SIGKILL


@attrs.frozen
class System:
    """Facts on this machine, looked up once for all sandboxes of a pool: the lookup takes as long as starting a sandbox.

    *visible* has bwrap's arguments for the programs and libraries inside, and *path* is PATH there. *bwrap* and *taskset* are the paths of
    these commands: they are started without an environment, because the environment could be read inside.
    """

    visible: tuple[str, ...]
    path: str
    bwrap: str
    taskset: str


def inspect_system() -> System:
    """Return the facts on this machine."""
    python = () if shutil.which("python3", path=_PATH) else (sys.base_prefix,)
    path = ":".join([*(f"{prefix}/bin" for prefix in python), _PATH])
    return System(
        (*_bind_folders(), *_bind_existing((*_NEEDED, *python))), path, command_path("bwrap"), command_path("taskset")
    )


def bwrap_arguments(
    program: Program,
    system: System,
    mounts: Sequence[Path],
    environment: Mapping[str, str],
    files: MemoryFiles,
    box: int | None,
) -> list[str]:
    """Return all arguments of bwrap.

    Files that bwrap reads are added to *files*. The file that *program* is to return is written to the descriptor *box*.
    """
    return [
        *("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
        *("--unshare-cgroup-try", "--hostname", "sandbox", "--uid", "1000", "--gid", "1000", "--disable-userns"),
        *("--new-session", "--die-with-parent", "--cap-drop", "ALL", "--seccomp", str(files.file(seccomp.assemble()))),
        *system.visible,
        *(part for path, text in _ACCOUNTS.items() for part in _file_arguments(files, path, text.encode())),
        *("--proc", "/proc", "--dev", "/dev", "--size", str(_SHARED_MEMORY), "--tmpfs", "/dev/shm"),  # noqa: S108  # inside
        *("--size", str(program.limits.disk), "--tmpfs", "/tmp"),  # noqa: S108  # inside
        # After /tmp, which would hide mounts below it.
        *(part for path in mounts for part in ("--ro-bind", str(path), str(path))),
        *("--dir", WORKSPACE, "--dir", HOME),
        *_workspace_arguments(program, files),
        *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", WORKSPACE, "--clearenv"),
        *_environment_arguments(program, system.path, environment),
        *("--", *_limit_prefix(program), *_shell_command(program, box)),
    ]


def _bind_folders() -> Iterator[str]:
    yield from ("--ro-bind", "/usr", "/usr")
    for name in _SYSTEM:
        path = Path(name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), name)
        elif path.is_dir():
            yield from ("--ro-bind", name, name)


def _bind_existing(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield from ("--ro-bind-try", name, name)


def _environment_arguments(program: Program, path: str, environment: Mapping[str, str]) -> Iterator[str]:
    variables = {
        "PATH": path,
        "HOME": HOME,
        "TMPDIR": "/tmp",  # noqa: S108  # inside
        "USER": "sandbox",
        "LANG": "C.UTF-8",
        **environment,
        **program.environment,
    }
    for name, value in variables.items():
        yield from ("--setenv", name, value)


def _file_arguments(files: MemoryFiles, path: str, content: bytes) -> tuple[str, ...]:
    permissions = "0755" if content.startswith(b"#!") else "0644"
    return "--perms", permissions, "--file", str(files.file(content)), path


def _workspace_arguments(program: Program, files: MemoryFiles) -> Iterator[str]:
    if program.archive is not None:
        yield from _file_arguments(files, _ARCHIVE, program.archive)
    for name, content in program.files.items():
        yield from _file_arguments(files, f"{WORKSPACE}/{name}", content)


def _limit_prefix(program: Program) -> tuple[str, ...]:
    limits = program.limits
    seconds = max(1, math.ceil(limits.cpu))
    return (
        *("/usr/bin/prlimit", f"--cpu={seconds}:{seconds + _HARD}", f"--data={limits.memory}"),
        *(f"--fsize={limits.file_size}", f"--nproc={limits.processes + _FIRST}"),
        *(f"--nofile={_OPEN_FILES}", "--core=0", "--"),
    )


def _shell_command(program: Program, box: int | None) -> tuple[str, ...]:
    """Return the command; in a shell if an archive has to be unpacked before, or a file returned after."""
    if program.archive is None and program.collect is None:
        return program.command
    unpack = f"{_UNPACK} || exit 125; " if program.archive is not None else ""
    if program.collect is None:
        return "/bin/sh", "-c", f'{unpack}exec "$@"', "sh", *program.command
    script = unpack + _COLLECT.format(box=f"/proc/self/fd/{box}")
    return "/bin/sh", "-c", script, "sh", program.collect, *program.command


def affinity_prefix(taskset: str, cpus: int, slot: int) -> tuple[str, ...]:
    """Return the prefix that limits a command to *cpus* of the CPUs of this process; *slot* selects the CPUs."""
    available = sorted(os.sched_getaffinity(0))
    if cpus >= len(available):
        return ()
    selected = [available[(slot * cpus + offset) % len(available)] for offset in range(cpus)]
    return taskset, "-c", ",".join(map(str, selected))


def command_path(command: str) -> str:
    """Return the path of *command*, or its name if it is not in PATH."""
    return shutil.which(command) or command
