"""Lines on stderr during long work, such as loading a model or answering a call."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_END_SECONDS = 1.0


class Waiting:
    """Prints a line on stderr every *seconds* during work, or none if *seconds* is None.

    Each line is complete, so that a log has it too. On a terminal, it replaces a line of progress that has not ended.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds

    @contextmanager
    def of(self, work: str, detail: Callable[[], str] = lambda: "") -> Iterator[None]:
        """Print lines about *work* while the block runs, each with the current *detail*."""
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
        start = time.monotonic()
        while not is_over.wait(seconds):
            line = f"llamacpp/chat: {work}, {time.monotonic() - start:.0f} s{detail()}"
            clear = "\r\x1b[K" if sys.stderr.isatty() else ""
            print(f"{clear}{line}", file=sys.stderr, flush=True)
