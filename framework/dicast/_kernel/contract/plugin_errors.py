"""Distinction of exceptions that a plugin's code raised from exceptions that come from outside."""

from __future__ import annotations

import asyncio


def is_plugins_own(error: BaseException) -> bool:
    """Return whether a plugin's code raised *error* itself; ``SystemExit`` and ``GeneratorExit`` count, and ``CancelledError`` for its own tasks.

    The user's interrupt, the cancellation of this task and the end of an abandoned coroutine come from outside.
    """
    if isinstance(error, KeyboardInterrupt):
        return False
    if not isinstance(error, asyncio.CancelledError | GeneratorExit):
        return True
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs, so a coroutine is being closed
        return False
    return task is not None and not (isinstance(error, asyncio.CancelledError) and task.cancelling())
