"""A real timer for ``def`` components: it ends a busy loop or a catastrophic regular expression.

One interval timer ticks for the whole run and looks whether the call that is under way is over its time, so that a call
costs no system call of its own.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

TICK_SECONDS = 0.01
INSIST_SECONDS = 0.25
"""After this long a component that swallowed the first :class:`Overtime` gets the next one."""


class Overtime(BaseException):
    """Raised inside a call that is over its time; not an ``Exception``, so that the component does not swallow it."""


class Timer:
    """Watches the ``def`` call that is under way: the innermost, within the time of those around it.

    Where no signal can be had (not POSIX, not the main thread) nothing is interrupted. *over* says that the newest call was;
    *deadline* is when the one under way is, by the monotonic clock, and 0 where there is none.
    """

    def __init__(self) -> None:
        self.over = False
        self.deadline = 0.0
        self._aborted: Callable[[], bool] = bool

    def begin(self, seconds: float) -> float:
        """A call begins that may take *seconds*; return what *deadline* has to be set to when it is over."""
        before, deadline = self.deadline, time.monotonic() + seconds
        self.over = False
        self.deadline = min(before, deadline) if before else deadline
        return before

    @contextmanager
    def ticking(self, aborted: Callable[[], bool]) -> Iterator[None]:
        """Tick while the block runs; *aborted* tells that the call under way has to end at once."""
        if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
            yield
            return
        self._aborted = aborted
        before = signal.signal(signal.SIGALRM, self._tick)
        signal.setitimer(signal.ITIMER_REAL, TICK_SECONDS, TICK_SECONDS)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            if before is not signal.SIG_DFL:  # which would end the process by a tick that another thread still holds
                signal.signal(signal.SIGALRM, before)

    def _tick(self, signum: int, frame: FrameType | None) -> None:
        if self.deadline and (time.monotonic() > self.deadline or self._aborted()):
            self.deadline = time.monotonic() + INSIST_SECONDS
            self.over = True
            raise Overtime
