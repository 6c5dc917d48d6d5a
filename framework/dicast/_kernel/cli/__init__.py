"""The command line. The commands are imported when the process has its settings."""

from __future__ import annotations

import atexit
import gc
import signal
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    if arguments is None:  # the process is dicast's own; collecting garbage among imported modules takes 0.1 s
        gc.set_threshold(100_000, 10, 10)
        atexit.register(gc.freeze)
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # everything is done; keep the exit code
    from .group import run_arguments  # after the threshold

    return run_arguments(arguments)
