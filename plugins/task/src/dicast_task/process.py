"""Running a program with its input, to its end and that of all it has started."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

_CHUNK = 65_536
_TAIL = 4_096
_LEAVE_SECONDS = 1.0
"""How long what a program has started may go on after it."""

_LOOK_SECONDS = 0.05


class TooMuch(Exception):
    """A program wrote more than it may."""


async def ended(words: Sequence[str], data: bytes, folder: Path, most: int) -> tuple[int, bytes, bytes]:
    """Exit code, stdout and the end of stderr of the program *words*, which got *data* on its stdin.

    :raises OSError: when it could not be started.
    :raises TooMuch: when it wrote more than *most* bytes to stdout.
    """
    process = await _start(words, folder)
    output, errors = bytearray(), bytearray()
    try:
        async with asyncio.TaskGroup() as group:
            pipes = [_feed(process, data), _read(process, output, most), _tail(process.stderr, errors)]
            work = [group.create_task(pipe) for pipe in pipes]
            leaving = group.create_task(_leave(process, work))
            await asyncio.wait(work)
            leaving.cancel()
        if len(output) > most:
            raise TooMuch
        # Its end is told by wait() only when nobody holds its pipes any more.
        code = process.returncode
        return await process.wait() if code is None else code, bytes(output), bytes(errors)
    finally:
        await _end(process)


async def _start(words: Sequence[str], folder: Path) -> Process:
    """Start the program. One that is being started when its time is over is ended, too, with what it has started by then."""
    starting = asyncio.create_task(
        asyncio.create_subprocess_exec(*words, stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=folder, start_new_session=True)
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with suppress(OSError):  # nothing was started
            await _end(await starting)
        raise


async def _leave(process: Process, work: Collection[asyncio.Task[None]]) -> None:
    """When the program has ended, and something that it has started holds its pipes, end that; then let go of the pipes."""
    while process.returncode is None:  # noqa: ASYNC110  # while the pipes are held, nothing else tells it
        await asyncio.sleep(_LOOK_SECONDS)
    await asyncio.sleep(_LEAVE_SECONDS)
    _kill(process)
    await asyncio.sleep(_LOOK_SECONDS)
    for task in work:
        task.cancel()  # held by a process that has left the group


async def _end(process: Process) -> None:
    """End the program with all that it has started, and read what is left, so that its pipes are closed."""
    _kill(process)
    try:
        async with asyncio.timeout(_LEAVE_SECONDS):
            await process.communicate()
    except TimeoutError:  # a process that has left the group still holds a pipe, which only the transport can let go of
        process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001  # asyncio has no public name for it


def _kill(process: Process) -> None:
    with suppress(ProcessLookupError):  # all of them have ended
        os.killpg(process.pid, signal.SIGKILL)


async def _feed(process: Process, data: bytes) -> None:
    """Write *data*; a program need not read it."""
    stdin = process.stdin
    assert stdin is not None  # it is a pipe
    with suppress(BrokenPipeError, ConnectionResetError):
        stdin.write(data)
        await stdin.drain()
    stdin.close()


async def _read(process: Process, found: bytearray, most: int) -> None:
    """Read stdout into *found*, and end the program with the first piece that makes it longer than *most*."""
    assert process.stdout is not None  # it is a pipe
    while chunk := await process.stdout.read(_CHUNK):
        found += chunk
        if len(found) > most:
            _kill(process)
            return


async def _tail(stream: asyncio.StreamReader | None, kept: bytearray) -> None:
    """Keep the last of what *stream* has; all of it is read, so that the program need not wait."""
    assert stream is not None  # it is a pipe
    while chunk := await stream.read(_CHUNK):
        kept += chunk
        del kept[:-_TAIL]
