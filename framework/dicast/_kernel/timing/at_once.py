"""Running a coroutine that waits for nothing."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from ..values.errors import PluginError

T = TypeVar("T")


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """What *work* returns, without an event loop, which takes 30 ms to import and more than a small reading to make.

    :raises PluginError: when it waits for something all the same.
    """
    try:
        work.send(None)
    except StopIteration as end:
        found: T = end.value
        return found
    work.close()
    raise PluginError("a ledger file is opened without an event loop, and this one's plugin waits for one")
