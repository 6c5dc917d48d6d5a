"""Ending a command in order, whichever signal asks for it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def sigterm_as_ctrl_c() -> Iterator[None]:
    """Let SIGTERM do what Ctrl-C does while the block runs: raise KeyboardInterrupt, or end the event loop that is running.

    Also where SIGINT is ignored, as in the background jobs of a script. For commands that start no run which handles signals itself.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler)}
    before[signal.SIGTERM] = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
