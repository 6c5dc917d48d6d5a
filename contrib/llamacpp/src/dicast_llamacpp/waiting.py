"""Lines on stderr during long work: loading a model, answering a call."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_END_SECONDS = 1.0


class Waiting:
    """Lines on stderr, one each *seconds*, while work is under way; none if *seconds* is None.

    Each line is complete, so that a log gets it too; on a terminal it is cleared before the next one.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds

    @contextmanager
    def of(self, work: str, detail: Callable[[], str] = lambda: "") -> Iterator[None]:
        """Print lines about *work*, with its *detail* at the time, for the length of the block."""
        if self._seconds is None:
            yield
            return
        is_over = threading.Event()
        thread = threading.Thread(target=self._lines, args=(work, detail, is_over, self._seconds), daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join(_END_SECONDS)

    @staticmethod
    def _lines(work: str, detail: Callable[[], str], is_over: threading.Event, seconds: float) -> None:
        began = time.monotonic()
        while not is_over.wait(seconds):
            line = f"llamacpp/chat: {work}, {time.monotonic() - began:.0f} s{detail()}"
            clear = "\r\x1b[K" if sys.stderr.isatty() else ""
            print(f"{clear}{line}", file=sys.stderr, flush=True)
