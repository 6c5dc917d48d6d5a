"""Observation of a component in use: text on standard output, log records, and the time for which it blocks the event loop."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, redirect_stdout, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import attrs

from .._kernel.contract.plugin_errors import frame_place

BLOCKED_SECONDS = 0.25
"""Time for which a component may block the event loop; all other calls wait meanwhile."""

_BEAT_SECONDS = 0.01


@attrs.define
class Watch:
    """Record of a component in use. *package* is the plugin's package: its lines are the places.

    :param printed: texts on standard output, each with the line that printed it.
    :param logged: messages of log records.
    :param blocked: the longest time in seconds without a turn of the event loop, and the line that ran then.
    """

    package: str
    printed: list[tuple[str, str]] = attrs.field(factory=list)
    logged: list[str] = attrs.field(factory=list)
    blocked: tuple[float, str] = (0.0, "")
    _beat: float = 0.0
    _cpu: float = 0.0
    _queued: float = 0.0
    _place: str = ""
    _is_busy: bool = False

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record texts on standard output and log records during the block."""
        handler = _Handler(self.logged)
        root = logging.getLogger()
        level = root.level
        root.addHandler(handler)
        root.setLevel(logging.DEBUG)
        try:
            with redirect_stdout(_Stdout(self)):
                yield
        finally:
            root.removeHandler(handler)
            root.setLevel(level)

    @asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        """Measure the turns of the event loop during the block."""
        is_over = threading.Event()
        self._beat, self._cpu, self._queued = time.monotonic(), time.thread_time(), _queued_seconds()
        beats = asyncio.ensure_future(self._beats())
        thread = threading.Thread(target=self._sample, args=(threading.get_ident(), is_over), daemon=True)
        thread.start()
        try:
            yield
            await asyncio.sleep(0)
        finally:
            self._turn()
            is_over.set()
            thread.join()
            beats.cancel()
            with suppress(asyncio.CancelledError):
                await beats

    async def _beats(self) -> None:
        while True:
            self._turn()
            await asyncio.sleep(_BEAT_SECONDS)

    def _turn(self) -> None:
        now, cpu, queued = time.monotonic(), time.thread_time(), _queued_seconds()
        seconds = now - self._beat - (queued - self._queued)
        # where the system does not tell how long a thread was queued, one on a busy machine has used no CPU time and is in no call
        if seconds > self.blocked[0] and (self._is_busy or cpu - self._cpu > seconds / 2):
            self.blocked = seconds, self._place
        self._beat, self._cpu, self._queued, self._place, self._is_busy = now, cpu, queued, "", False

    def _sample(self, thread: int, is_over: threading.Event) -> None:
        """Note the plugin's line while the event loop makes no turn."""
        while not is_over.wait(_BEAT_SECONDS):
            if time.monotonic() - self._beat > BLOCKED_SECONDS / 2 and not self._place:
                frame = sys._current_frames().get(thread)  # noqa: SLF001  # documented, for such tools
                self._place = frame_place(frame, self.package)
                self._is_busy = frame is not None and Path(frame.f_code.co_filename).name != "selectors.py"

    def note_print(self, text: str, frame: FrameType | None) -> None:
        """Record *text* that *frame* printed."""
        if text.strip():
            self.printed.append((text, frame_place(frame, self.package)))


def _queued_seconds() -> float:
    """Return for how long this thread was ready and other threads had the processors; 0 except on Linux."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


class _Handler(logging.Handler):
    def __init__(self, messages: list[str]) -> None:
        super().__init__()
        self._messages = messages

    def emit(self, record: logging.LogRecord) -> None:
        self._messages.append(record.getMessage())


class _Stdout:
    """Standard output whose texts go to a :class:`Watch` alone."""

    encoding = "utf-8"

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def write(self, text: str) -> int:
        self._watch.note_print(text, sys._getframe(1))  # noqa: SLF001  # documented
        return len(text)

    def flush(self) -> None:
        """Do nothing: each text is recorded at once."""

    def isatty(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.__stdout__, name)
