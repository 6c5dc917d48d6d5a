"""One started process, followed to its end: its output bounded, its time over when it is over."""

from __future__ import annotations

import asyncio
import re
from asyncio.subprocess import Process
from collections.abc import Coroutine
from typing import Any

import attrs

from dicast import Execution, Failure, Limits

TAIL_BYTES = 256 * 1024
"""How many bytes of output are kept, from its end."""

_CHUNK = 1 << 16
_SIGNS = (
    ("memory", re.compile(rb"MemoryError|bad_alloc|Cannot allocate memory|[Oo]ut of memory")),
    ("processes", re.compile(rb"Resource temporarily unavailable|can't start new thread|[Cc]annot fork")),
    ("file_size", re.compile(rb"File too large|EFBIG")),
    ("disk", re.compile(rb"No space left on device")),
)
_SIGNALS = {128 + 24: "cpu", 128 + 25: "file_size"}  # SIGXCPU, SIGXFSZ


class Tail:
    """The end of an output, and how long all of it was."""

    def __init__(self) -> None:
        self.bytes = 0
        self._content = bytearray()

    def add(self, chunk: bytes) -> None:
        """Take what was written next."""
        self.bytes += len(chunk)
        self._content += chunk
        if len(self._content) > 2 * TAIL_BYTES:
            del self._content[:-TAIL_BYTES]

    @property
    def content(self) -> bytes:
        """The last :data:`TAIL_BYTES` bytes."""
        return bytes(self._content[-TAIL_BYTES:])


async def follow(process: Process, limits: Limits, tail: Tail, stream: asyncio.StreamReader | None) -> str | None:
    """Read *stream* into *tail* until it ends and so does *process*; the limit that was struck, ``output`` or ``wall``."""
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
    """What came of a program that has *struck* a limit, or ended by itself with *code*.

    The kernel refuses what is beyond a limit and tells nobody but the program: what it *output_bytes* last is how that is guessed.
    """
    struck = struck or _SIGNALS.get(code)
    guess = guess_limit(code, output_bytes) if struck is None else None
    output = output_bytes.decode(errors="replace")
    return Execution(code, output, seconds, struck or guess, collected, guessed=guess is not None)


def guess_limit(code: int, output: bytes) -> str | None:
    """The limit that a program which ended by itself with *code* has struck by its last words, as far as they can be believed."""
    if code == 0:
        return None
    return next((limit for limit, words in _SIGNS if words.search(output[-4096:])), None)


def exit_code(returned: int) -> int:
    """*returned* as a shell has it: 128 + n after signal n."""
    return 128 - returned if returned < 0 else returned


def join_peer_result(answer: Execution | Failure, peer_result: Execution | Failure) -> Execution | Failure:
    """What came of a program whose peer has ended before it: a limit that the peer struck is why, and nothing that it said is."""
    if isinstance(answer, Failure) or isinstance(peer_result, Failure):
        return answer if isinstance(answer, Failure) else peer_result
    limit, guessed = answer.limit, answer.guessed
    if answer.struck is None and peer_result.struck is not None:
        limit, guessed = peer_result.struck, False
    words = (
        peer_result.output if peer_result.exit else ""
    )  # one that ends as the tests do may have come to it by now, or not
    return attrs.evolve(answer, limit=limit, guessed=guessed, beside=words)


async def await_fully(ending: Coroutine[Any, Any, None]) -> None:
    """Await *ending*, all of it even when this is cancelled meanwhile."""
    task = asyncio.create_task(ending)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise
