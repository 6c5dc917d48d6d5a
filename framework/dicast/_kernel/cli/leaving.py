"""End of the process. The interpreter would wait for every thread, including threads that plugins left running."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress

from ...toolkit.printable import one_line

LEAVE_SECONDS = 2.0
"""Seconds to wait for threads that plugins left running."""


def end_soon(code: int) -> None:
    """End the process with *code* after a short wait, even if threads are still running."""
    if _thread_names():
        threading.Thread(target=_end, args=(code,), daemon=True).start()


def _thread_names() -> list[str]:
    main = threading.main_thread()
    return [thread.name for thread in threading.enumerate() if thread is not main and not thread.daemon]


def _end(code: int) -> None:
    time.sleep(LEAVE_SECONDS)
    if not _thread_names():  # the process ends by itself
        return
    with suppress(OSError, ValueError):  # the stream has no reader any more
        sys.stdout.flush()
        names = one_line(", ".join(_thread_names()))
        print(f"ended without waiting for threads that plugins left running: {names}", file=sys.stderr, flush=True)
    os._exit(code)
