"""Concurrent calls of coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def gather(*calls: Coroutine[Any, Any, T]) -> list[T]:
    """Run *calls* at the same time and return their results, in their order.

    If a call raises, the other calls are canceled and awaited, and the first exception is raised instead of an exception group.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from several
    return [task.result() for task in tasks]
