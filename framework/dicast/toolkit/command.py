"""Commands that run to their end, and whose remaining processes are then ended."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from .._kernel.classes import frozen
from .process_tree import Adoption, ProcessTree

MAX_OUTPUT_BYTES = 10_000_000
"""The bytes that a command may write to stdout by default."""

_CHUNK = 65_536
_TAIL = 4_096
_LEAVE_SECONDS = 1.0
"""Seconds that processes of a command may go on after its end."""

_LOOK_SECONDS = 0.05


class OutputTooLong(Exception):
    """A command wrote more than it may."""


@frozen
class CommandEnd:
    """The end of a command.

    :param code: its exit code; -N if signal N ended it.
    :param output: its stdout; empty if a function received it.
    :param errors: the last 4,096 bytes of its stderr; of stdout and stderr if they shared a pipe.
    """

    code: int
    output: bytes
    errors: bytes

    @property
    def how(self) -> str:
        """The exit code or the signal, in words."""
        return f"the exit code is {self.code}" if self.code >= 0 else f"it was ended by signal {-self.code}"


async def call_command(
    words: Sequence[str],
    data: bytes = b"",
    *,
    folder: Path | None = None,
    env: Mapping[str, str] | None = None,
    most: int = MAX_OUTPUT_BYTES,
    receive: Callable[[bytes], object] | None = None,
    receive_errors: Callable[[bytes], object] | None = None,
    adopt: bool = False,
) -> CommandEnd:
    """Run the program *words*, without a shell, in its own session, and wait for its end.

    Every process that the program left running is killed afterwards: at once, or after a second if it holds the program's pipes.
    Cancelling this call, for example by ``asyncio.timeout``, kills the program and those processes. Processes that left the session
    are killed on systems with ``/proc``, unless they cleared their environment; with *adopt* these are killed too. On Windows only
    the program itself is killed.

    :param data: written to its stdin, which it need not read.
    :param folder: the folder in which it starts; the current folder by default.
    :param env: variables in addition to the variables of this process, which they replace.
    :param most: the most bytes that it may write to stdout.
    :param receive: receives its stdout and stderr, which then share one pipe, in the order in which they were written. Nothing is
        kept and *most* does not count. An error that it raises ends the program, and is raised.
    :param receive_errors: receives stderr, which then has its own pipe, so that the end's ``errors`` are from stderr alone.
    :param adopt: make this process the parent of every orphan (Linux), and kill all children that appear during the call. Only for a
        process that starts no other child meanwhile.
    :raises OSError: if it could not be started.
    :raises OutputTooLong: if it wrote more than *most* bytes to stdout.
    """
    tree = ProcessTree()
    adoption = Adoption() if adopt else None
    process = await _start(
        words, folder, {**(env or {}), **tree.env}, merged=receive is not None and receive_errors is None
    )
    pipes = _Pipes(process, most, receive, receive_errors)
    try:
        async with asyncio.TaskGroup() as group:
            work = [group.create_task(pipe) for pipe in (pipes.feed(data), pipes.read_output(), pipes.read_errors())]
            leaving = group.create_task(_leave(process, work))
            await asyncio.wait(work)
            leaving.cancel()
        if pipes.fault is not None:
            raise pipes.fault
        # wait() returns only when no process holds its pipes any more.
        code = process.returncode
        return CommandEnd(await process.wait() if code is None else code, bytes(pipes.output), bytes(pipes.errors))
    finally:
        _kill(process)
        tree.end()  # before any await: a second cancellation may interrupt the rest
        if adoption is not None:
            adoption.end(process.pid)
        await _end(process)


class _Pipes:
    """Pipes of a program: feeds its stdin and reads its output; *fault* is the reason why the program was ended early."""

    def __init__(
        self,
        process: Process,
        most: int,
        receive: Callable[[bytes], object] | None,
        receive_errors: Callable[[bytes], object] | None,
    ) -> None:
        self._process, self._most, self._receive, self._receive_errors = process, most, receive, receive_errors
        self.output, self.errors = bytearray(), bytearray()
        self.fault: Exception | None = None

    async def feed(self, data: bytes) -> None:
        """Write *data*; a program need not read it."""
        stdin = self._process.stdin
        assert stdin is not None  # it is a pipe
        with suppress(BrokenPipeError, ConnectionResetError):
            stdin.write(data)
            await stdin.drain()
        stdin.close()

    async def read_output(self) -> None:
        """Keep stdout, or pass it on; end the program with the first piece that is too much."""
        stdout = self._process.stdout
        assert stdout is not None  # it is a pipe
        while chunk := await stdout.read(_CHUNK):
            try:
                self._take(chunk)
            except Exception as error:  # the border to the caller's code
                self.fault = error
                _kill(self._process)
                return

    def _take(self, chunk: bytes) -> None:
        if self._receive is not None:
            if self._receive_errors is None:
                _keep_tail(self.errors, chunk)
            self._receive(chunk)
            return
        self.output += chunk
        if len(self.output) > self._most:
            raise OutputTooLong(f"it wrote more than {self._most:,} bytes")

    async def read_errors(self) -> None:
        """Keep the last of stderr, and pass all of it on; all of it is read, so that the program need not wait."""
        stderr = self._process.stderr
        while stderr is not None and (chunk := await stderr.read(_CHUNK)):
            _keep_tail(self.errors, chunk)
            if self._receive_errors is not None:
                try:
                    self._receive_errors(chunk)
                except Exception as error:  # the border to the caller's code
                    self.fault = error
                    _kill(self._process)
                    return


def _keep_tail(tail: bytearray, chunk: bytes) -> None:
    tail += chunk
    del tail[:-_TAIL]


async def _start(words: Sequence[str], folder: Path | None, env: Mapping[str, str], *, merged: bool) -> Process:
    """Start the program. If its time ends during the start, the program and its processes are ended too."""
    starting = asyncio.create_task(
        asyncio.create_subprocess_exec(
            *words,
            stdin=PIPE,
            stdout=PIPE,
            stderr=STDOUT if merged else PIPE,
            cwd=folder,
            env={**os.environ, **env},
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with suppress(OSError):  # nothing was started
            process = await starting
            _kill(process)
            await _end(process)
        raise


async def _leave(process: Process, work: Collection[asyncio.Task[None]]) -> None:
    """Wait for the end of the program. If its processes still hold its pipes a second later, kill them and stop reading the pipes."""
    while process.returncode is None:  # noqa: ASYNC110  # wait() does not return while the pipes are held
        await asyncio.sleep(_LOOK_SECONDS)
    await asyncio.sleep(_LEAVE_SECONDS)
    _kill(process)
    await asyncio.sleep(_LOOK_SECONDS)
    for task in work:
        task.cancel()  # held by a process that has left the session


async def _end(process: Process) -> None:
    """Read the remaining output of a program that was killed with its session, so that its pipes are closed."""
    try:
        with suppress(
            TimeoutError
        ):  # a process that has left the session still holds a pipe, which the transport lets go of
            async with asyncio.timeout(_LEAVE_SECONDS):
                await process.communicate()
    finally:
        process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001  # asyncio has no public name for it


def _kill(process: Process) -> None:
    ProcessTree.end_session(process.pid)
