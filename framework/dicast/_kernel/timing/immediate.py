"""Execution of a coroutine that never waits."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from ..values.errors import PluginError

T = TypeVar("T")


def run_immediately(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of *work* without an event loop, whose import takes 30 ms and whose setup takes longer than a small read.

    :raises PluginError: if *work* waits nevertheless.
    """
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise PluginError("a ledger file is opened without an event loop, and the plugin of this file waits for one")
