"""Timer for ``def`` components, which also ends a busy loop or a catastrophic regular expression.

One interval timer ticks for all runs of the process, and checks whether the active call has exceeded its time. So a call costs no
system call of its own. On a system without an interval timer (Windows), a thread ticks instead.
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
"""Seconds after which a component that swallowed the first :class:`Overtime` gets the next one."""

_SOON = 1e-6
"""Shortest time of an alarm; 0 would remove it."""

Handler = Callable[[int, FrameType | None], Any] | int
"""Handler of a signal, or ``SIG_DFL`` or ``SIG_IGN``."""


class Overtime(BaseException):
    """Raised inside a call that has exceeded its time. It is not an ``Exception``, so that components do not swallow it."""


class Timer:
    """Time limit of the active ``def`` call: the innermost call, within the time of its enclosing calls.

    Outside the main thread no call is interrupted, because Python runs signal handlers in the main thread alone. *over* is whether the newest
    call exceeded its time. *deadline* is the end of the active call's time by the monotonic clock; 0 without a call.
    """

    def __init__(self) -> None:
        self.over = False
        self.deadline = 0.0
        self._patience = 0.0
        self._aborted: Callable[[], bool] = bool

    def patiently(self, function: Callable[[T], R], argument: T, seconds: float, patience: float = inf) -> R:
        """Return the result of ``function(argument)``.

        :param seconds: the time of the call.
        :param patience: seconds for which a run that has to stop waits for the call.
        :raises Overtime: inside *function*, if its time is over.
        """
        before, patient = self.deadline, self._patience
        try:  # a tick may also end the statements before the call
            now = time.monotonic()
            self._patience, self.over = now + patience, False
            self.deadline = min(before, now + seconds) if before else now + seconds
            return function(argument)
        finally:
            self.deadline, self._patience = before, patient

    @contextmanager
    def ticking(self, aborted: Callable[[], bool]) -> Iterator[None]:
        """Tick during the block; *aborted* returns whether the active call has to end at once."""
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
        """End the active call if its time is over.

        :raises Overtime: inside the call.
        """
        now = time.monotonic()
        if self.deadline and (now > self.deadline or (now > self._patience and self._aborted())):
            self.deadline = self._patience = now + INSIST_SECONDS
            self.over = True
            raise Overtime


class TickSource(Protocol):
    """Source of ticks, which sends the signal *number* to the process every :data:`TICK_SECONDS`."""

    number: signal.Signals

    def start(self) -> None:
        """Start to tick."""

    def stop(self) -> tuple[float, float]:
        """Stop, and return the seconds until the host's own alarm, and its interval; 0 without an alarm."""


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
    """Signal handler of the process during runs. All runs share one handler: a further run uses the installed handler.

    When the last run ends, the host's handler and alarm are restored. If the host's alarm is due earlier, the host's handler is called at
    the next tick.
    """

    def __init__(self, clock: TickSource, host: Handler) -> None:
        self._clock, self._host = clock, host
        self._timers: list[Timer] = []
        self._due, self._every = inf, 0.0

    @classmethod
    def current(cls) -> Ticker | None:
        """Return the installed ticker, or a new ticker.

        None outside the main thread, or if C code has a handler that would be lost.
        """
        if threading.current_thread() is not threading.main_thread():
            return None
        clock: TickSource = AlarmTicks() if hasattr(signal, "setitimer") else ThreadTicks()
        handler = signal.getsignal(clock.number)
        return handler if isinstance(handler, cls) else None if handler is None else cls(clock, handler)

    def join(self, timer: Timer) -> None:
        """Tick for *timer* too."""
        if not self._timers:
            seconds_left, self._every = self._clock.stop()
            self._due = time.monotonic() + seconds_left if seconds_left else inf
            signal.signal(self._clock.number, self)
        self._timers.append(timer)
        self._clock.start()

    def leave(self, timer: Timer) -> None:
        """Stop to tick for *timer*. After the last timer the host's handler and alarm are restored, unless the host has set other ones."""
        self._timers.remove(timer)
        is_installed = signal.getsignal(self._clock.number) is self
        if self._timers or not is_installed:
            return
        self._clock.stop()
        due, self._due = self._due, inf
        signal.signal(self._clock.number, signal.SIG_IGN)  # drops a pending tick of another thread
        signal.signal(self._clock.number, self._host)
        if due < inf:
            signal.setitimer(signal.ITIMER_REAL, max(due - time.monotonic(), _SOON), self._every)

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        """Check each timer, and the host's alarm."""
        now = time.monotonic()
        if now >= self._due and callable(self._host):
            self._due = now + self._every if self._every else inf
            self._host(signum, frame)
        for timer in self._timers:
            timer.look()
