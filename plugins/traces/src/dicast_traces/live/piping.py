"""Events from a pipe: standard input."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Self

from .lines import Line, Splitter
from .tail import CHUNK, Position

AHEAD = 8
"""Chunks that are read from the pipe in advance."""


class Piped:
    """Standard input, read line by line in a thread. *is_at_end* is true once its writer has closed it and all lines were returned.

    *is_behind* is true if the writer of the pipe had to wait, or the last reading left chunks for the next.

    :param wake: is called in the event loop when there is something new.
    """

    def __init__(self, max_line_bytes: int, wake: Callable[[], None]) -> None:
        self._lines = Splitter("<stdin>", max_line_bytes)
        self._wake, self._loop = wake, asyncio.get_running_loop()
        self._chunks: deque[bytes] = deque()
        self._room = threading.Semaphore(AHEAD)
        self.is_at_end = self.is_behind = False
        self.file_count = 1

    def __enter__(self) -> Self:
        # A daemon thread that does not use sys.stdin: a waiting read cannot be interrupted, and must not keep the process alive.
        threading.Thread(target=self._pump, args=(sys.stdin.fileno(),), daemon=True, name="dicast-stdin").start()
        return self

    def __exit__(self, *exception: object) -> None:
        return

    def restore(self, positions: Sequence[Position]) -> None:
        """Do nothing: the input that an earlier process read from its pipe is gone."""

    def read(self, most: int) -> Sequence[Line]:
        """Return the lines that have arrived, about *most* bytes of them."""
        lines: list[Line] = []
        was_full = len(self._chunks) >= AHEAD
        while self._chunks and most > 0:
            chunk = self._chunks.popleft()
            self._room.release()
            most -= len(chunk)
            if not chunk:
                last = self._lines.finish()
                self.is_at_end, self.is_behind = True, False
                return lines if last is None else [*lines, last]
            lines += self._lines.cut(chunk)
        self.is_behind = was_full or bool(self._chunks)
        return lines

    def rest(self) -> Sequence[Line]:
        """Return no lines: a line without an end may still continue."""
        return ()

    def positions(self) -> list[Position]:
        """Return no positions: a pipe cannot be read again."""
        return []

    @property
    def unread(self) -> int:
        """Number of bytes that have arrived and were not returned as lines yet."""
        return sum(map(len, self._chunks)) + len(self._lines.rest)

    def _pump(self, file: int) -> None:
        chunk = b"."
        while chunk:
            self._room.acquire()
            try:
                chunk = os.read(file, CHUNK)
            except OSError:
                chunk = b""
            self._loop.call_soon_threadsafe(self._came, chunk)

    def _came(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self._wake()
