"""Lines on stderr while something takes long: a model that loads, a call that is answered."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_END_SECONDS = 1.0


class Waiting:
    """Lines on stderr, one each *seconds*, for as long as work is under way; none if *seconds* is None.

    Each line is whole, so that a log has it too; a terminal's line that is written over is cleared before it.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds

    @contextmanager
    def of(self, work: str, detail: Callable[[], str] = lambda: "") -> Iterator[None]:
        """Print lines about *work*, with its *detail* at the time, for the length of the block."""
        if self._seconds is None:
            yield
            return
        ended = threading.Event()
        thread = threading.Thread(target=self._lines, args=(work, detail, ended, self._seconds), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(_END_SECONDS)

    @staticmethod
    def _lines(work: str, detail: Callable[[], str], ended: threading.Event, seconds: float) -> None:
        began = time.monotonic()
        while not ended.wait(seconds):
            line = f"llamacpp/chat: {work}, {time.monotonic() - began:.0f} s{detail()}"
            clear = "\r\x1b[K" if sys.stderr.isatty() else ""
            print(f"{clear}{line}", file=sys.stderr, flush=True)
