"""A real timer for ``def`` components: it ends a busy loop or a catastrophic regular expression.

One interval timer ticks for all the runs of the process and looks whether the call that is under way is over its time, so that a
call costs no system call of its own. Where the system has no interval timer (Windows), a thread ticks instead.
"""

from __future__ import annotations

import _thread
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from types import FrameType
from typing import Any, Protocol, TypeVar

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

    Outside the main thread nothing is interrupted, because Python runs handlers of signals in the main thread alone. *over* says that the newest call was;
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


class TickSource(Protocol):
    """Sends the signal *number* to the process every :data:`TICK_SECONDS`."""

    number: signal.Signals

    def start(self) -> None:
        """Start to tick."""

    def stop(self) -> tuple[float, float]:
        """Stop, and return the seconds until the host's own alarm and its interval; 0 where there is none."""


class AlarmTicks:
    """The interval timer of the system, whose signal is SIGALRM. It interrupts calls that wait, such as ``time.sleep``."""

    def __init__(self) -> None:
        self.number: signal.Signals = signal.SIGALRM

    def start(self) -> None:
        """Start to tick."""
        signal.setitimer(signal.ITIMER_REAL, TICK_SECONDS, TICK_SECONDS)

    def stop(self) -> tuple[float, float]:
        """Stop, and return the seconds until the host's own alarm and its interval."""
        return signal.setitimer(signal.ITIMER_REAL, 0)


class ThreadTicks:
    """A thread that simulates a signal, for systems without an interval timer.

    The signal is SIGILL, which Windows never sends by itself. A simulated signal ends Python code. It ends neither a call that waits, such
    as ``time.sleep``, nor one that keeps other threads from running, such as a search of ``re``.
    """

    def __init__(self) -> None:
        self.number: signal.Signals = signal.SIGILL
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start to tick, unless the thread ticks already."""
        if self._thread is None:
            self._over.clear()
            self._thread = threading.Thread(target=self._tick, name="dicast-timer", daemon=True)
            self._thread.start()

    def stop(self) -> tuple[float, float]:
        """Stop; the host has no alarm of its own."""
        if self._thread is not None:
            self._over.set()
            self._thread.join()
            self._thread = None
        return 0.0, 0.0

    def _tick(self) -> None:
        while not self._over.wait(TICK_SECONDS):
            _thread.interrupt_main(self.number)


class Ticker:
    """The process's handler of a clock's signal while runs judge: one for all of them, which a further run finds where it is set.

    What the host had, its handler and its own alarm, it has again when the last run leaves; an alarm of the host's that is due
    before goes to the host's handler, at the next tick.
    """

    def __init__(self, clock: TickSource, host: Handler) -> None:
        self._clock, self._host = clock, host
        self._timers: list[Timer] = []
        self._due, self._every = inf, 0.0

    @classmethod
    def current(cls) -> Ticker | None:
        """Return the running timer, or a new timer.

        None outside the main thread, and where C code has a handler that would be lost.
        """
        if threading.current_thread() is not threading.main_thread():
            return None
        clock: TickSource = AlarmTicks() if hasattr(signal, "setitimer") else ThreadTicks()
        handler = signal.getsignal(clock.number)
        return handler if isinstance(handler, cls) else None if handler is None else cls(clock, handler)

    def join(self, timer: Timer) -> None:
        """Tick for *timer*, too."""
        if not self._timers:
            left, self._every = self._clock.stop()
            self._due = time.monotonic() + left if left else inf
            signal.signal(self._clock.number, self)
        self._timers.append(timer)
        self._clock.start()

    def leave(self, timer: Timer) -> None:
        """Tick no more for *timer*; after the last one the host has its handler and its alarm, unless it has set others."""
        self._timers.remove(timer)
        ours = signal.getsignal(self._clock.number) is self
        if self._timers or not ours:
            return
        self._clock.stop()
        due, self._due = self._due, inf
        signal.signal(self._clock.number, signal.SIG_IGN)  # which drops a tick that another thread still holds
        signal.signal(self._clock.number, self._host)
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
