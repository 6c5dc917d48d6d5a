"""Orderly end of a command, for Ctrl-C and for SIGTERM."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def sigterm_as_ctrl_c() -> Iterator[None]:
    """Make SIGTERM act as Ctrl-C during the block: raise KeyboardInterrupt, or end the running event loop.

    This includes processes that ignore SIGINT, such as background jobs of a script. Use it for commands without a run that handles
    signals itself.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous_handlers = {signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler)}
    previous_handlers[signal.SIGTERM] = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)
