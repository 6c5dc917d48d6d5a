"""Python's cyclic garbage collector while a run is judging."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG = 100_000
"""New containers before the collector looks at them; a batch of events has about as many, and is let go as a whole."""


@contextmanager
def patient_collector() -> Iterator[None]:
    """Let the collector wait until a batch is through: looking at live events again and again took 7 % of a run's CPU time.

    Each run adds to the threshold what it takes away again, so runs may end in any order; of a collector that is off, and outside
    the main thread, where another one may be at it at the same moment, nothing is changed.
    """
    first, *rest = gc.get_threshold()
    if not first or threading.current_thread() is not threading.main_thread():
        yield
        return
    gc.set_threshold(first + YOUNG, *rest)
    try:
        yield
    finally:
        first, *rest = gc.get_threshold()
        if first > YOUNG:  # else the host has set it meanwhile
            gc.set_threshold(first - YOUNG, *rest)
