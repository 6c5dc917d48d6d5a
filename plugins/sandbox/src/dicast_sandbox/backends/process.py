"""Process followed to its end, with bounded output and time."""

from __future__ import annotations

import asyncio
import re
from asyncio.subprocess import Process
from collections.abc import Coroutine
from typing import Any

import attrs

from dicast import Execution, Failure, Limits

TAIL_BYTES = 256 * 1024
"""Number of bytes that are kept from the end of an output."""

_CHUNK = 1 << 16
_SIGNS = (
    ("memory", re.compile(rb"MemoryError|bad_alloc|Cannot allocate memory|[Oo]ut of memory")),
    ("processes", re.compile(rb"Resource temporarily unavailable|can't start new thread|[Cc]annot fork")),
    ("file_size", re.compile(rb"File too large|EFBIG")),
    ("disk", re.compile(rb"No space left on device")),
)
_SIGNALS = {128 + 24: "cpu", 128 + 25: "file_size"}  # SIGXCPU, SIGXFSZ


class Tail:
    """End of an output, and the length of the whole output."""

    def __init__(self) -> None:
        self.bytes = 0
        self._content = bytearray()

    def add(self, chunk: bytes) -> None:
        """Add the next chunk of output."""
        self.bytes += len(chunk)
        self._content += chunk
        if len(self._content) > 2 * TAIL_BYTES:
            del self._content[:-TAIL_BYTES]

    @property
    def content(self) -> bytes:
        """Return the last :data:`TAIL_BYTES` bytes."""
        return bytes(self._content[-TAIL_BYTES:])


async def follow(process: Process, limits: Limits, tail: Tail, stream: asyncio.StreamReader | None) -> str | None:
    """Read *stream* into *tail* until the stream and *process* end; return the exceeded limit, ``output`` or ``wall``, or None."""
    try:
        async with asyncio.timeout(limits.wall):
            while stream is not None and (chunk := await stream.read(_CHUNK)):
                tail.add(chunk)
                if tail.bytes > limits.output:
                    return "output"
            await process.wait()
    except TimeoutError:
        return "wall"
    return None


def make_execution(
    code: int, output_bytes: bytes, seconds: float, struck: str | None, collected: bytes | None
) -> Execution:
    """Return the execution of a program that has exceeded the limit *struck*, or ended by itself with *code*.

    The kernel reports a refused resource to the program alone. The limit is therefore guessed from the end of *output_bytes*.
    """
    struck = struck or _SIGNALS.get(code)
    guess = guess_limit(code, output_bytes) if struck is None else None
    output = output_bytes.decode(errors="replace")
    return Execution(code, output, seconds, struck or guess, collected, guessed=guess is not None)


def guess_limit(code: int, output: bytes) -> str | None:
    """Return the limit that a program probably exceeded, from its last output; None if it ended with code 0 or no message matches."""
    if code == 0:
        return None
    return next((limit for limit, words in _SIGNS if words.search(output[-4096:])), None)


def exit_code(returned: int) -> int:
    """Return *returned* as a shell reports it: 128 + n after signal n."""
    return 128 - returned if returned < 0 else returned


def join_peer_result(answer: Execution | Failure, peer_result: Execution | Failure) -> Execution | Failure:
    """Return the result of a program whose peer ended before it.

    A limit that the peer exceeded becomes the limit of the program; the output of the peer does not count for guessing a limit.
    """
    if isinstance(answer, Failure) or isinstance(peer_result, Failure):
        return answer if isinstance(answer, Failure) else peer_result
    limit, guessed = answer.limit, answer.guessed
    if answer.struck is None and peer_result.struck is not None:
        limit, guessed = peer_result.struck, False
    # A peer that ends along with the tests may or may not have written its output yet.
    words = peer_result.output if peer_result.exit else ""
    return attrs.evolve(answer, limit=limit, guessed=guessed, beside=words)


async def await_fully(ending: Coroutine[Any, Any, None]) -> None:
    """Await *ending* to its end, even if this task is canceled meanwhile."""
    task = asyncio.create_task(ending)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise
