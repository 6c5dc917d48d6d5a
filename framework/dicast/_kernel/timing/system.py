"""Facilities that this system lacks, and promises that do not hold without them."""

from __future__ import annotations

import os
import signal
from pathlib import Path


def missing_promises() -> list[str]:
    """Return the promises of dicast that do not hold on this system, as sentences without a final period; an empty list on Linux."""
    missing = []
    if not hasattr(signal, "setitimer"):
        missing.append("no interval timer: a timeout ends Python code, but no call that waits and no search of re")
    if not hasattr(os, "killpg"):
        missing.append("no sessions: a timeout ends a command, but no process that the command started")
    elif not Path("/proc/self/environ").exists():
        missing.append("no /proc: processes that left the session of a command are not ended")
    return missing
