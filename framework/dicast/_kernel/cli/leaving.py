"""The end of the process, for which the interpreter waits until the last thread has ended: those that plugins left, too."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress

from ...toolkit.printable import one_line

LEAVE_SECONDS = 2.0
"""How long is waited for the threads that plugins left."""


def end_soon(code: int) -> None:
    """Let the process end with *code* soon, whatever threads there are."""
    if _others():
        threading.Thread(target=_end, args=(code,), daemon=True).start()


def _others() -> list[str]:
    main = threading.main_thread()
    return [thread.name for thread in threading.enumerate() if thread is not main and not thread.daemon]


def _end(code: int) -> None:
    time.sleep(LEAVE_SECONDS)
    if not _others():  # the process ends by itself
        return
    with suppress(OSError, ValueError):  # nobody reads any more
        sys.stdout.flush()
        names = one_line(", ".join(_others()))
        print(f"ended without waiting for threads that plugins left: {names}", file=sys.stderr, flush=True)
    os._exit(code)
