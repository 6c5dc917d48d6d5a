"""The border to a plugin's code: which exceptions are a fault of the plugin, and which come from outside."""

from __future__ import annotations

import asyncio


def is_plugins_own(error: BaseException) -> bool:
    """Whether a plugin's code has raised *error* itself: also ``SystemExit`` and ``GeneratorExit``, and ``CancelledError`` for its own tasks.

    Not its own are the user's interrupt, this task's cancellation, and the end of a coroutine that nobody awaits any more.
    """
    if isinstance(error, KeyboardInterrupt):
        return False
    if not isinstance(error, asyncio.CancelledError | GeneratorExit):
        return True
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs: a coroutine is being closed
        return False
    return task is not None and not (isinstance(error, asyncio.CancelledError) and task.cancelling())
