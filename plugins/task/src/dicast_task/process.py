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


class TooMuch(Exception):
    """A program wrote more than it may."""


async def ended(words: Sequence[str], data: bytes, folder: Path, most: int) -> tuple[int, bytes, bytes]:
    """Exit code, stdout and the end of stderr of the program *words*, which got *data* on its stdin.

    :raises OSError: when it could not be started.
    :raises TooMuch: when it wrote more than *most* bytes to stdout.
    """
    process = await asyncio.create_subprocess_exec(
        *words, stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=folder, start_new_session=True
    )
    beside = asyncio.gather(_feed(process, data), _tail(process.stderr))
    try:
        output = await _read(process.stdout, most)
        _, errors = await beside
        return await process.wait(), output, errors
    finally:
        with suppress(ProcessLookupError):  # all of them have ended
            os.killpg(process.pid, signal.SIGKILL)
        beside.cancel()
        await process.wait()


async def _feed(process: Process, data: bytes) -> None:
    """Write *data*; a program need not read it."""
    stdin = process.stdin
    assert stdin is not None  # it is a pipe
    with suppress(BrokenPipeError, ConnectionResetError):
        stdin.write(data)
        await stdin.drain()
    stdin.close()


async def _read(stream: asyncio.StreamReader | None, most: int) -> bytes:
    assert stream is not None  # it is a pipe
    found = bytearray()
    while chunk := await stream.read(_CHUNK):
        found += chunk
        if len(found) > most:
            raise TooMuch
    return bytes(found)


async def _tail(stream: asyncio.StreamReader | None) -> bytes:
    """The last of what *stream* has; all of it is read, so that the program need not wait."""
    assert stream is not None  # it is a pipe
    kept = b""
    while chunk := await stream.read(_CHUNK):
        kept = (kept + chunk)[-_TAIL:]
    return kept
