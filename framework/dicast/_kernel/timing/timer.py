"""A real timer for ``def`` components: it ends a busy loop or a catastrophic regular expression.

One interval timer ticks for all the runs of the process and looks whether the call that is under way is over its time, so that a
call costs no system call of its own.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

TICK_SECONDS = 0.01
INSIST_SECONDS = 0.25
"""After this long a component that swallowed the first :class:`Overtime` gets the next one."""

_SOON = 1e-6
"""The shortest time that an alarm takes; 0 would take it back."""

Handler = Callable[[int, FrameType | None], Any] | int
"""What Python calls at a signal, or what it does without: a ``SIG_DFL`` or ``SIG_IGN``."""


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
        self._patience = 0.0
        self._aborted: Callable[[], bool] = bool

    def begin(self, seconds: float) -> float:
        """A call begins that may take *seconds*; return what *deadline* has to be set to when it is over."""
        before, deadline = self.deadline, time.monotonic() + seconds
        self.over = False
        self.deadline = min(before, deadline) if before else deadline
        return before

    def patiently(self, function: Callable[[T], R], given: T, seconds: float, patience: float = inf) -> R:
        """What *function* returns in its time. A run that has to stop leaves it alone for as long as its *patience*.

        :raises Overtime: inside it, when its time was over.
        """
        before, patient = self.begin(seconds), self._patience
        self._patience = time.monotonic() + patience
        try:
            return function(given)
        finally:
            self.deadline, self._patience = before, patient

    @contextmanager
    def ticking(self, aborted: Callable[[], bool]) -> Iterator[None]:
        """Tick while the block runs; *aborted* says that the call under way has to end at once."""
        ticker = Ticker.current()
        if ticker is None:
            yield
            return
        self._aborted = aborted
        ticker.join(self)
        try:
            yield
        finally:
            ticker.leave(self)

    def look(self) -> None:
        """End the call under way where it is over its time.

        :raises Overtime: inside it.
        """
        now = time.monotonic()
        if self.deadline and (now > self.deadline or (now > self._patience and self._aborted())):
            self.deadline = self._patience = now + INSIST_SECONDS
            self.over = True
            raise Overtime


class Ticker:
    """The process's handler of SIGALRM while runs judge: one for all of them, which a further run finds where it is set.

    What the host had, its handler and its own alarm, it has again when the last run leaves; an alarm of the host's that is due
    before goes to the host's handler, at the next tick.
    """

    def __init__(self, host: Handler) -> None:
        self._host = host
        self._timers: list[Timer] = []
        self._due, self._every = inf, 0.0

    @classmethod
    def current(cls) -> Ticker | None:
        """The one that ticks, or a new one; None where no signal can be had, or one that C code handles would be lost."""
        if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
            return None
        handler = signal.getsignal(signal.SIGALRM)
        return handler if isinstance(handler, cls) else None if handler is None else cls(handler)

    def join(self, timer: Timer) -> None:
        """Tick for *timer*, too."""
        if not self._timers:
            left, self._every = signal.setitimer(signal.ITIMER_REAL, 0)
            self._due = time.monotonic() + left if left else inf
            signal.signal(signal.SIGALRM, self)
        self._timers.append(timer)
        signal.setitimer(signal.ITIMER_REAL, TICK_SECONDS, TICK_SECONDS)

    def leave(self, timer: Timer) -> None:
        """Tick no more for *timer*; after the last one the host has its handler and its alarm, unless it has set others."""
        self._timers.remove(timer)
        ours = signal.getsignal(signal.SIGALRM) is self
        if self._timers or not ours:
            return
        signal.setitimer(signal.ITIMER_REAL, 0)
        due, self._due = self._due, inf
        signal.signal(signal.SIGALRM, signal.SIG_IGN)  # which drops a tick that another thread still holds
        signal.signal(signal.SIGALRM, self._host)
        if due < inf:
            signal.setitimer(signal.ITIMER_REAL, max(due - time.monotonic(), _SOON), self._every)

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        """Look at each timer, and at the host's alarm."""
        now = time.monotonic()
        if now >= self._due and callable(self._host):
            self._due = now + self._every if self._every else inf
            self._host(signum, frame)
        for timer in self._timers:
            timer.look()
