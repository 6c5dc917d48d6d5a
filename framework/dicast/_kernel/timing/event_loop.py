"""Event loops that end although components left tasks and threads in them, and garbage collection during a run."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, TypeVar

from ..values.errors import PluginError

T = TypeVar("T")

LEAVE_SECONDS = 2.0
"""Seconds to wait for the cancelled tasks that components left."""

YOUNG = 100_000
"""Additional containers before a collection; a batch of events has about as many, and is freed as a whole."""


def in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run *work* to its end; if an event loop is already running, in a separate thread."""
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
            return thread.submit(copy_context().run, _run_alone, work).result()
    except asyncio.CancelledError as error:  # only a component can cancel the tasks of this loop
        raise PluginError(
            "a component canceled the tasks of the run; judged subjects are recorded, continue with --resume"
        ) from error


def _run_alone(work: Coroutine[Any, Any, T]) -> T:
    """Run *work* as ``asyncio.run`` does, but without waiting for the tasks and threads that components left."""
    threads = ThreadPoolExecutor(thread_name_prefix="dicast")  # no thread is started before there is work
    results: list[T] = []

    async def take_result() -> None:
        results.append(await work)  # not as the task's result: the runner makes the text of its task

    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        loop.set_default_executor(threads)
        try:
            runner.run(take_result())
        finally:
            loop.run_until_complete(_cancel_left_tasks())
            threads.shutdown(wait=False, cancel_futures=True)
            loop.set_default_executor(ThreadPoolExecutor(1))  # the loop waits for the threads of its executor
    return results[0]


async def _cancel_left_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        _, ignoring = await asyncio.wait(tasks, timeout=LEAVE_SECONDS)
        for task in ignoring:
            asyncio._unregister_task(task)  # noqa: SLF001  # documented; nothing else stops the loop from waiting at its end


@contextmanager
def patient_collector() -> Iterator[None]:
    """Raise the threshold of the garbage collector for the block: repeated scans of live events took 7 % of a run's CPU time.

    Each run adds an amount to the threshold and subtracts it again, so runs may end in any order. Nothing changes if the collector is
    off, or outside the main thread, where another thread may change the threshold at the same moment.
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
        if first > YOUNG:  # else the host has changed it in the meantime
            gc.set_threshold(first - YOUNG, *rest)
