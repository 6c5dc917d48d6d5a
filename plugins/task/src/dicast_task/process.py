"""Running a program with its input, to its end and that of all it has started."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_CHUNK = 65_536
_TAIL = 4_096
_LEAVE_SECONDS = 1.0


class TooMuch(Exception):
    """A program wrote more than it may."""


async def ended(words: Sequence[str], data: bytes, folder: Path, most: int) -> tuple[int, bytes, bytes]:
    """Exit code, stdout and the end of stderr of the program *words*, which got *data* on its stdin.

    :raises OSError: when it could not be started.
    :raises TooMuch: when it wrote more than *most* bytes to stdout.
    """
    process = await _start(words, folder)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_feed(process, data))
            errors = group.create_task(_tail(process.stderr))
            output = await _read(process.stdout, most)
            if len(output) > most:
                _kill(process)
        if len(output) > most:
            raise TooMuch  # without waiting for the process, whose end is not told before all that it wrote was read
        return await process.wait(), output, errors.result()
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


async def _end(process: Process) -> None:
    """End the program with all that it has started, and read what is left, so that its pipes are closed."""
    _kill(process)
    with suppress(TimeoutError):  # a process that has left the group still holds a pipe
        async with asyncio.timeout(_LEAVE_SECONDS):
            await process.communicate()


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


async def _read(stream: asyncio.StreamReader | None, most: int) -> bytes:
    """What *stream* has, up to the first piece that makes it longer than *most*."""
    assert stream is not None  # it is a pipe
    found = bytearray()
    while len(found) <= most and (chunk := await stream.read(_CHUNK)):
        found += chunk
    return bytes(found)


async def _tail(stream: asyncio.StreamReader | None) -> bytes:
    """The last of what *stream* has; all of it is read, so that the program need not wait."""
    assert stream is not None  # it is a pipe
    kept = b""
    while chunk := await stream.read(_CHUNK):
        kept = (kept + chunk)[-_TAIL:]
    return kept
