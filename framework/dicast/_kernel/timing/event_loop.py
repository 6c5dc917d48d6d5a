"""Running an event loop to its end, whatever components have left in it, and the garbage collector meanwhile."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from ..values.errors import PluginError

T = TypeVar("T")

LEAVE_SECONDS = 2.0
"""How long is waited for the tasks that components left, once they are cancelled."""

YOUNG = 100_000
"""New containers before the collector looks at them; a batch of events has about as many, and is let go as a whole."""


def in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run *work* to its end, in a thread of its own where an event loop is running already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        alone = True
    else:
        alone = False
    try:
        if alone:
            return _run_alone(work)
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(_run_alone, work).result()
    except asyncio.CancelledError as error:  # nobody else knows the tasks of a loop of its own
        raise PluginError(
            "a component has cancelled the tasks of the run; what was judged is kept, and --resume goes on"
        ) from error


def _run_alone(work: Coroutine[Any, Any, T]) -> T:
    """Run *work* as ``asyncio.run`` does, which would wait for the tasks and threads that components left, however long they take."""
    threads = ThreadPoolExecutor(thread_name_prefix="dicast")  # has none before there is work for one
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        loop.set_default_executor(threads)
        try:
            return runner.run(work)
        finally:
            loop.run_until_complete(_leave_tasks())
            threads.shutdown(wait=False, cancel_futures=True)
            loop.set_default_executor(ThreadPoolExecutor(1))  # the loop waits for this one's threads


async def _leave_tasks() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        _, deaf = await asyncio.wait(left, timeout=LEAVE_SECONDS)
        for task in deaf:
            asyncio._unregister_task(task)  # noqa: SLF001  # documented, and all that keeps the loop's end from waiting


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
