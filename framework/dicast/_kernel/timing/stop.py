"""Requests to stop a run: Ctrl-C, SIGTERM, or a condition under which no further call can succeed."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

END_SECONDS = 5.0
"""Seconds for which the process may continue after the second signal."""


class Stop:
    """Request to end the run, with its reason. The user's request replaces any other reason."""

    def __init__(self) -> None:
        self.has_started = False
        self.reason: str | None = None
        self.message: str | None = None
        self.details: Mapping[str, object] = {}
        self.drains = False
        self._event = asyncio.Event()
        self.interrupted = asyncio.Event()

    def request(self, reason: str, message: str | None, details: Mapping[str, object] | None = None) -> None:
        """Request the end of the run because of *reason*, after the active calls. Call it in the event loop."""
        if self.reason is None:
            self.reason, self.message, self.details, self.drains = reason, message, details or {}, True
            self._event.set()

    def document(self) -> dict[str, object]:
        """Return the request as the run's document records it."""
        document = {"reason": self.reason, "message": self.message, **self.details}
        return {key: value for key, value in document.items() if value is not None}

    def __bool__(self) -> bool:
        return self.reason is not None

    @property
    def event(self) -> asyncio.Event:
        """The event that is set when the end of the run is requested."""
        return self._event

    async def wait(self) -> None:
        """Wait until the end of the run is requested."""
        await self._event.wait()

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Handle SIGINT and SIGTERM as requests to stop during the block; this works in the main thread alone.

        Until *has_started* is set there are no results to keep, and the first signal acts as the second one. A second signal, of either kind,
        raises KeyboardInterrupt at the current instruction of the process. If the process still continues, it is ended soon after.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

        over = threading.Event()

        def insist(number: int, frame: FrameType | None) -> None:
            for signal_number in handlers:  # not the previous handlers: asyncio's would only request the end again
                signal.signal(signal_number, signal.default_int_handler)
            threading.Thread(target=_end_unless, args=(over,), daemon=True).start()
            raise KeyboardInterrupt

        def handle(number: int, frame: FrameType | None) -> None:
            if not self.has_started:
                insist(number, frame)
            for signal_number in handlers:
                signal.signal(signal_number, insist)
            self.reason, self.message, self.details, self.drains = "interrupted", None, {}, False
            loop.call_soon_threadsafe(self._event.set)
            loop.call_soon_threadsafe(self.interrupted.set)

        for number in handlers:
            signal.signal(number, handle)
        try:
            yield
        finally:
            over.set()
            for number, handler in handlers.items():
                signal.signal(number, handler)


def _end_unless(over: threading.Event) -> None:
    """End the process if the run is not *over* soon, because a plugin swallowed the KeyboardInterrupt."""
    if not over.wait(END_SECONDS):
        os.write(2, b"interrupted: a plugin did not stop, so the process was ended; continue with --resume\n")
        os._exit(130)
