"""Container that lives as long as its stdin is open, and therefore as long as dicast.

A shell in the container, the keeper, waits for its stdin. It runs as another user than the programs inside, so they can neither end, stop nor
inspect it. When its stdin ends, the keeper ends, then the container, and the kernel ends all processes inside: no timer and no clean-up has to
outlive dicast. For each line on stdin the keeper reports the resources that the container has used, without starting a process: this
works even if no more processes can be started.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import uuid
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress

import attrs

from dicast import Limits

from .. import seccomp
from ..process import await_fully

UID, KEEPER_UID = 64_999, 64_998
"""Users of a program inside and of the keeper: unprivileged users, in the range reserved for them."""

START_SECONDS = 60
"""Longest time for the start of a container, or of a command in it."""

KEEPER = (
    "for tool in head mkdir tar; do "
    'command -v $tool >/dev/null || { echo "the image has no $tool" >&2; exit 125; }; done; '
    'say() { while read -r line; do echo "$1 $line"; done <"$2"; } 2>/dev/null; '
    "echo ready; cd /sys/fs/cgroup; while read -r number; do "
    "say memory memory.events || say memory memory/memory.oom_control; "
    "say processes pids.events || say processes pids/pids.events; "
    "say cpu cpu.stat || say nanoseconds cpuacct/cpuacct.usage; "
    'echo "end $number"; done'
)
"""Script of the keeper; the file names are those of control groups, version 2 or 1."""

READY = b"ready\n"

_END_SECONDS = 15
_CHUNK = 1 << 16
_SHARED_MEMORY = 64 * 1024**2
_OPEN_FILES = 1024
_EXTRA_PROCESSES = 5  # the first process, the keeper, and the relay
_PERIOD = 100_000  # microseconds
_PROXIES = tuple(f"{name}_proxy" for name in ("http", "https", "ftp", "no", "all"))
_COUNTERS = re.compile(
    rb"^memory oom_kill (\d+)|^processes max (\d+)|^cpu usage_usec (\d+)|^nanoseconds (\d+)", re.MULTILINE
)


@attrs.frozen
class Engine:
    """Address of a container engine, and the image and environment of its containers."""

    image: str
    host: str | None
    environment: Mapping[str, str]

    def command(self, *words: str) -> tuple[str, ...]:
        """Return the command line for the engine."""
        return "docker", *(() if self.host is None else ("--host", self.host)), *words


@attrs.frozen
class Usage:
    """Resources used by a container: processes ended for *memory*, refused *processes*, CPU *seconds*.

    None for a resource that the engine does not count.
    """

    memory: int | None
    processes: int | None
    seconds: float | None

    def exceeded(self, limits: Limits) -> str | None:
        """Return the name of the exceeded limit of *limits*, or None."""
        if self.memory:
            return "memory"
        if self.processes:
            return "processes"
        return "cpu" if (self.seconds or 0) > limits.cpu else None


def parse_usage(report: bytes) -> Usage:
    """Return the usage in the keeper's *report*."""
    numbers = [
        next((int(group) for group in column if group), None) for column in zip(*_COUNTERS.findall(report), strict=True)
    ]
    memory, processes, micro, nano = numbers or [None] * 4
    return Usage(memory, processes, micro / 1e6 if micro is not None else nano / 1e9 if nano is not None else None)


def run_options(engine: Engine, limits: Limits, name: str, filter_file: str) -> Iterator[str]:
    """Yield the options of ``docker run``, up to the command of the keeper.

    The client reads the filter of system calls from *filter_file*.
    """
    seconds = max(1, math.ceil(limits.cpu))
    memory = str(limits.memory)
    yield from ("--interactive", "--rm", "--init", "--name", name, "--label", "dicast=sandbox", "--pull", "never")
    yield from ("--network", "none", "--ipc", "private", "--cgroupns", "private", "--hostname", "sandbox")
    yield from ("--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--security-opt", f"seccomp={filter_file}")
    yield from (
        "--user",
        f"{KEEPER_UID}:{KEEPER_UID}",
        "--workdir",
        "/",
        "--log-driver",
        "none",
        "--no-healthcheck",
        "--read-only",
    )
    yield from ("--tmpfs", f"/tmp:rw,exec,nosuid,nodev,mode=1777,uid={UID},gid={UID},size={limits.disk}")  # noqa: S108  # inside
    yield from ("--shm-size", str(_SHARED_MEMORY), "--memory", memory, "--memory-swap", memory)
    yield from ("--pids-limit", str(limits.processes + _EXTRA_PROCESSES), "--cpu-period", str(_PERIOD))
    yield from ("--cpu-quota", str(limits.cpus * _PERIOD), "--ulimit", f"cpu={seconds}:{seconds + 1}")
    yield from ("--ulimit", f"fsize={limits.file_size}")
    yield from ("--ulimit", f"nofile={_OPEN_FILES}", "--ulimit", "core=0")
    for proxy in _PROXIES:  # the client would pass the user's proxies, possibly with passwords
        yield from ("--env", f"{proxy}=", "--env", f"{proxy.upper()}=")
    yield from ("--entrypoint", "/bin/sh", engine.image, "-c", KEEPER)


@contextmanager
def filter_file() -> Iterator[int]:
    """Provide a descriptor from which the filter of system calls can be read once, so that no file is left on the host."""
    read, write = os.pipe()
    try:
        with os.fdopen(write, "wb") as file:
            file.write(seccomp.engine_profile())
        yield read
    finally:
        os.close(read)


@attrs.define
class Container:
    """Running container of *engine*; *keeper* is the client process connected to the keeper."""

    engine: Engine
    name: str
    keeper: Process
    _looks: int = 0

    async def read_usage(self) -> Usage | None:
        """Return the usage so far; None if the container has ended."""
        assert self.keeper.stdin is not None and self.keeper.stdout is not None  # noqa: PT018  # they are pipes
        self._looks += 1
        end, report = f"end {self._looks}\n".encode(), b""
        with suppress(ConnectionError):
            self.keeper.stdin.write(b"%d\n" % self._looks)
            await self.keeper.stdin.drain()
        while line := await self.keeper.stdout.readline():
            if line == end:
                return parse_usage(report)
            report += line
        return None

    async def enter(self, command: Sequence[str], environment: Mapping[str, str]) -> Process:
        """Start *command* inside; its three streams are pipes."""
        variables = [part for item in environment.items() for part in ("--env", "=".join(item))]
        words = ("exec", "--interactive", "--user", f"{UID}:{UID}", *variables, self.name, *command)
        return await _client(self.engine.command(*words))

    async def end(self) -> None:
        """End all processes inside, and wait until the container is gone."""
        assert self.keeper.stdin is not None  # a pipe
        self.keeper.stdin.close()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await wait_until_gone(self.keeper)
        except TimeoutError:
            removing = await _client(self.engine.command("rm", "--force", self.name))
            await removing.communicate()
            await end_client(self.keeper)


@asynccontextmanager
async def start_container(engine: Engine, limits: Limits) -> AsyncIterator[Container | str]:
    """Provide a container for the length of the block, or the reason why it could not start."""
    name = f"dicast-{uuid.uuid4().hex}"
    with filter_file() as file:
        words = engine.command("run", *run_options(engine, limits, name, f"/dev/fd/{file}"))
        starting = asyncio.create_task(_client(words, file))
        running: Container | None = None
        try:
            # Shielded: a start that is canceled half-way could not be ended.
            running = Container(engine, name, await asyncio.shield(starting))
            yield await _wait_until_ready(running)
        finally:
            running = Container(engine, name, await starting) if running is None else running
            await await_fully(running.end())


async def _wait_until_ready(running: Container) -> Container | str:
    assert running.keeper.stdout is not None and running.keeper.stderr is not None  # noqa: PT018  # they are pipes
    try:
        async with asyncio.timeout(START_SECONDS):
            if await running.keeper.stdout.readline() == READY:
                return running
            return (await running.keeper.stderr.read()).decode(errors="replace").strip()
    except TimeoutError:
        return f"the engine has made no container in {START_SECONDS} s"


async def _client(words: Sequence[str], *descriptors: int) -> Process:
    """Start the client in a session of its own, so that keys typed at dicast's terminal do not end it."""
    return await asyncio.create_subprocess_exec(
        *words, stdin=PIPE, stdout=PIPE, stderr=PIPE, pass_fds=descriptors, start_new_session=True
    )


async def wait_until_gone(client: Process) -> None:
    """Wait until *client* has ended, and discard its output."""
    await asyncio.gather(_drain(client.stdout), _drain(client.stderr), client.wait())


async def end_client(client: Process) -> None:
    """End *client*, whose container has ended."""
    if client.returncode is None:
        with suppress(ProcessLookupError):
            client.kill()
    await wait_until_gone(client)


async def _drain(stream: asyncio.StreamReader | None) -> None:
    while stream is not None and await stream.read(_CHUNK):
        continue
