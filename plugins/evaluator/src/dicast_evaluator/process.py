"""Worker process: lines in, lines out."""

from __future__ import annotations

import asyncio
import os
from asyncio import SubprocessProtocol, SubprocessTransport
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import attrs
import orjson

from dicast.toolkit.process_tree import ProcessTree

from .result import excerpt, parsed

_TAIL = 4_096
_EXCERPT_CHARS = 500
_LEAVE_SECONDS = 2.0


@attrs.frozen
class Gone:
    """End of a worker: its exit code, the end of its stderr, the message for a line that was too long, and whether it had answered."""

    code: int
    errors: str
    too_long: str | None
    answered: bool


class Process(SubprocessProtocol):
    """A worker process. *take* is called with each line that is a JSON object; *on_end* is called once, at the end."""

    def __init__(self, take: Callable[[dict[str, Any]], None], on_end: Callable[[Gone], None], most: int) -> None:
        self._take, self._on_end, self._most = take, on_end, most
        self._line, self._errors = bytearray(), bytearray()
        self._too_long: str | None = None
        self._transport: SubprocessTransport | None = None
        self._gone = asyncio.get_running_loop().create_future()
        self._tree = ProcessTree()
        self.started: asyncio.Future[None] | None = None
        self.over = self.answered = False

    async def start(self, words: Sequence[str], folder: Path, env: Mapping[str, str]) -> None:
        """Start the program *words* in its own session.

        :raises OSError: when it cannot be started.
        """
        try:
            transport, _ = await asyncio.get_running_loop().subprocess_exec(
                lambda: self, *words, cwd=folder, env={**os.environ, **env, **self._tree.env}, start_new_session=True
            )
        except BaseException:
            self.over = True
            self._gone.cancel()
            raise
        self._transport = transport

    def send(self, line: bytes) -> None:
        """Write *line*. If the worker has ended, :meth:`process_exited` reports it."""
        assert self._transport is not None  # started
        stdin = cast("asyncio.WriteTransport | None", self._transport.get_pipe_transport(0))
        if stdin is not None and not stdin.is_closing():
            stdin.write(line)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Read output of the worker."""
        if fd != 1:
            self._errors += data
            del self._errors[:-_TAIL]
            return
        *lines, rest = data.split(b"\n")
        for line in lines:
            complete = bytes(self._line) + line if self._line else line
            self._line.clear()
            self._read(complete)
        self._line += rest
        if len(self._line) > self._most:
            self._too_long = f"a line has more than {self._most:,} bytes (max_line_bytes)"
            self._line.clear()
            self.kill()

    def _read(self, line: bytes) -> None:
        if b"{" not in line or self._too_long:
            return
        try:
            value = orjson.loads(line)
        except ValueError:
            try:
                value = parsed(line)
            except ValueError:
                return  # the worker's own output
        if isinstance(value, dict):
            self._take(value)

    def process_exited(self) -> None:
        """End the worker's child processes. Its earlier output, and theirs, may still arrive."""
        self.kill()
        # pipes inherited by other processes do not report their end
        asyncio.get_running_loop().call_later(_LEAVE_SECONDS, self._finish)

    def connection_lost(self, exc: Exception | None) -> None:
        """Finish, as all pipes are closed."""
        self._finish()

    def _finish(self) -> None:
        if self.over:
            return
        self.over = True
        transport = self._transport
        code = transport.get_returncode() if transport is not None else None
        if transport is not None:
            transport.close()
        if not self._gone.done():
            self._gone.set_result(None)
        self._on_end(
            Gone(
                -1 if code is None else code,
                excerpt(bytes(self._errors), _EXCERPT_CHARS),
                self._too_long,
                self.answered,
            )
        )

    def kill(self) -> None:
        """End the worker with its session, and descendants that left the session."""
        if self._transport is not None:
            self._tree.end_session(self._transport.get_pid())
            self._tree.end()

    async def close(self) -> None:
        """Close its stdin, and end it if it is still running some seconds later."""
        if self.started is not None:
            await asyncio.wait([self.started])
        if self.over or self._transport is None:
            return
        stdin = self._transport.get_pipe_transport(0)
        if stdin is not None:
            stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_SECONDS):
                await asyncio.shield(self._gone)
        if not self._gone.done():
            self.kill()
            await self._gone
