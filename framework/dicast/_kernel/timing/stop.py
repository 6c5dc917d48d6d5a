"""Being asked to stop: by Ctrl-C and SIGTERM, or because no further call can go well."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

END_SECONDS = 5.0
"""How long the process may go on after the second signal."""


class Stop:
    """Whether the run has to end, and why; the user's own wish comes before any other reason."""

    def __init__(self) -> None:
        self.has_started = False
        self.reason: str | None = None
        self.message: str | None = None
        self.details: Mapping[str, object] = {}
        self.drains = False
        self._event = asyncio.Event()
        self.interrupted = asyncio.Event()

    def request(self, reason: str, message: str | None, details: Mapping[str, object] | None = None) -> None:
        """Let the run end because of *reason*, after the calls under way; called in the event loop."""
        if self.reason is None:
            self.reason, self.message, self.details, self.drains = reason, message, details or {}, True
            self._event.set()

    def document(self) -> dict[str, object]:
        """What a run's document says of the stop."""
        said = {"reason": self.reason, "message": self.message, **self.details}
        return {key: value for key, value in said.items() if value is not None}

    def __bool__(self) -> bool:
        return self.reason is not None

    async def wait(self) -> None:
        """Return when the run has to end."""
        await self._event.wait()

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Let SIGINT and SIGTERM ask for the end while the block runs; only the main thread can.

        Until *has_started* is set there is nothing to keep, and the first signal already does what the second one does.
        A second signal, of either kind, raises KeyboardInterrupt wherever the process is, which ends it soon after in any case.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

        over = threading.Event()

        def insist(number: int, frame: FrameType | None) -> None:
            for each in before:  # not the handlers of before: asyncio's would only ask once more
                signal.signal(each, signal.default_int_handler)
            threading.Thread(target=_end_unless, args=(over,), daemon=True).start()
            raise KeyboardInterrupt

        def handle(number: int, frame: FrameType | None) -> None:
            if not self.has_started:
                insist(number, frame)
            for each in before:
                signal.signal(each, insist)
            self.reason, self.message, self.details, self.drains = "interrupted", None, {}, False
            loop.call_soon_threadsafe(self._event.set)
            loop.call_soon_threadsafe(self.interrupted.set)

        for number in before:
            signal.signal(number, handle)
        try:
            yield
        finally:
            over.set()
            for number, handler in before.items():
                signal.signal(number, handler)


def _end_unless(over: threading.Event) -> None:
    """End the process when the run is not *over* soon: a plugin swallows what it was interrupted with."""
    if not over.wait(END_SECONDS):
        os.write(2, b"interrupted: a plugin kept on, so the process was ended; --resume takes up what was judged\n")
        os._exit(130)
