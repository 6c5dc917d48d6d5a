"""One program in one sandbox, from its start until no process is left."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
import uuid
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import attrs

from dicast import Execution, Failure, Program

from ..process import Tail, await_fully, exit_code, follow, join_peer_result, make_execution
from .arguments import System, affinity_prefix, bwrap_arguments, inspect_system
from .memory import MemoryFiles, open_memory_files, read_box
from .status import Status
from .watch import Watch

PEER = "DICAST_PEER_FD"
"""Environment variable with the descriptor of the socket to a program's peer."""

_WORDS = 500
_CHUNK = 1 << 16
_PAUSE = 0.05


@attrs.frozen
class SandboxSettings:
    """Settings that all sandboxes of a pool share.

    *identity* returns the start of a command that sets the user of a slot; *mark* is a word in the command line of every sandbox.
    """

    mounts: Sequence[Path]
    environment: Mapping[str, str]
    identity: Callable[[int], tuple[str, ...]]
    watch: Watch
    system: System = attrs.field(factory=inspect_system)
    mark: str = attrs.field(factory=lambda: f"DICAST_{uuid.uuid4().hex}")

    async def run(self, program: Program, slot: int) -> Execution | Failure:
        """Run *program*, and its peer, on the CPUs of *slot*; the peer is ended when *program* has ended."""
        if program.peer is None:
            return await SandboxedProgram(self, program, slot).run()
        ours, theirs = socket.socketpair()
        with ours, theirs:
            environment: Mapping[str, str] = {**program.environment, PEER: str(ours.fileno())}
            tests = attrs.evolve(program, environment=environment)
            running = [
                asyncio.create_task(SandboxedProgram(self, tests, slot, ours, keep=True).run()),
                asyncio.create_task(SandboxedProgram(self, program.peer, slot, theirs).run()),
            ]
            try:
                answer = await running[0]
                peer_result = running[1].result() if running[1].done() else None
            finally:
                for task in running:
                    task.cancel()
                await asyncio.gather(*running, return_exceptions=True)
        return answer if peer_result is None else join_peer_result(answer, peer_result)


@attrs.define
class SandboxedProgram:
    """A *program* in a sandbox with *settings*, on the CPUs of *slot*.

    *end* is the program's end of a socket: its stdin and stdout, or with *keep* a further file descriptor.
    """

    settings: SandboxSettings
    program: Program
    slot: int
    end: socket.socket | None = None
    keep: bool = False
    struck: str | None = None

    async def run(self) -> Execution | Failure:
        """Run the program to its end."""
        start, tail, limits = time.monotonic(), Tail(), self.program.limits
        with ExitStack() as stack:
            files, status = stack.enter_context(open_memory_files()), Status()
            stack.callback(status.close)
            box = None if self.program.collect is None else files.box()
            starting = asyncio.create_task(self._start(files, status, box))
            try:
                process = await asyncio.shield(starting)  # if canceled half-way, it could not be ended
                with self.settings.watch.watching(
                    process.pid, limits, lambda limit: self._stop_at_limit(limit, process)
                ):
                    self.struck = await follow(process, limits, tail, _output_stream(process)) or self.struck
            finally:
                await await_fully(_end(starting, status))
            output = tail.content
            code = exit_code(status.numbers.get("exit-code", process.returncode or 0))
            if self.struck is None and "exit-code" not in status.numbers:
                words = output.decode(errors="replace").strip()[-_WORDS:]
                return Failure("crashed", f"sandbox/bubblewrap could not start: {words}", retryable=True)
            collected = None if box is None else read_box(box)
            return make_execution(code, output, time.monotonic() - start, self.struck, collected)

    def _stop_at_limit(self, limit: str, process: Process) -> None:
        self.struck = self.struck or limit
        _kill(process)

    async def _start(self, files: MemoryFiles, status: Status, box: int | None) -> Process:
        settings, options = self.settings, ["--json-status-fd", str(status.write)]
        options += bwrap_arguments(self.program, settings.system, settings.mounts, settings.environment, files, box)
        command = options.index("--")
        arguments_file = files.file(b"".join(part.encode() + b"\0" for part in options[:command]))
        descriptors = [*files.descriptors, status.write]
        stdin: Any = DEVNULL
        stdout, stderr = PIPE, STDOUT
        if self.end is not None and self.keep:
            descriptors.append(self.end.fileno())
        elif self.end is not None:
            stdin = stdout = self.end.fileno()
            stderr = PIPE
        prefix = affinity_prefix(settings.system.taskset, self.program.limits.cpus, self.slot)
        process = await asyncio.create_subprocess_exec(
            *(*settings.identity(self.slot), *prefix, settings.system.bwrap, "--unsetenv", settings.mark, "--args", str(arguments_file), *options[command:]),
            stdin=stdin, stdout=stdout, stderr=stderr, pass_fds=descriptors, cwd="/",
            env={}, start_new_session=True,
        )  # fmt: skip
        status.close_write_end()
        if self.end is not None:
            self.end.close()
        return process


def _kill(process: Process) -> None:
    """Kill bwrap and with it its first child, which either waits for bwrap or has asked the kernel to end with it."""
    if process.returncode is None:
        with suppress(ProcessLookupError):  # it has ended
            os.killpg(process.pid, signal.SIGKILL)


def _output_stream(process: Process) -> asyncio.StreamReader:
    stream = process.stdout or process.stderr
    assert stream is not None  # one of them is a pipe
    return stream


async def _end(starting: asyncio.Task[Process], status: Status) -> None:
    """End bwrap and all processes inside the sandbox."""
    process = await starting
    _kill(process)
    waiting = asyncio.create_task(_drain(process))
    while not waiting.done():
        status.kill()
        await asyncio.wait([waiting], timeout=_PAUSE)
    waiting.result()
    await status.wait_until_gone()


async def _drain(process: Process) -> None:
    while await _output_stream(process).read(_CHUNK):
        continue
    await process.wait()
