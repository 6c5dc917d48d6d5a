"""How far a run is, on stderr; silent where stderr is no terminal."""

from __future__ import annotations

import sys
import time
from typing import Self

from ..._toolkit.printable import Printable
from ..report.fold import Report

EVERY_SECONDS = 0.5


class Progress:
    """One line that is written over: subjects, rate, spend."""

    def __init__(self) -> None:
        # the terminal itself: Printable would escape the codes that write a line over
        self._stream = sys.stderr.stream if isinstance(sys.stderr, Printable) else sys.stderr
        self._shown = self._stream.isatty()
        self._began = time.monotonic()
        self._next = self._began + EVERY_SECONDS
        self._wrote = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._wrote:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def update(self, report: Report) -> None:
        """Show how far *report* is."""
        now = time.monotonic()
        if not self._shown or now < self._next:
            return
        self._next = now + EVERY_SECONDS
        self._wrote = True
        rate = report.judged / max(now - self._began, 1e-9)
        left = self._left(report, rate)
        self._stream.write(f"\r\x1b[K{report.judged:,} judged · {rate:,.0f}/s · spent {report.spent['usd']}{left}")
        self._stream.flush()

    def _left(self, report: Report, rate: float) -> str:
        if report.expected is None or not rate:
            return ""
        return f" · {max(0.0, report.expected - report.judged) / rate:,.0f} s left"
