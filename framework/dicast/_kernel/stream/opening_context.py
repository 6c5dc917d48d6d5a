"""The context manager that opens a component. Few modules are imported here: commands that read a ledger start with it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..values import RunContext


def opening(component: Any, run: RunContext | None, **options: bool) -> AbstractAsyncContextManager[Any]:
    """Return the context manager that opens *component*. A ledger with ``is_async_ledger`` is opened in a thread of its own."""
    if not getattr(component, "is_async_ledger", False):
        context: AbstractAsyncContextManager[Any] = component.open(run, **options)
        return context
    from .awaited_ledger import open_awaited  # imported late: an event loop takes 30 ms to import

    return open_awaited(component, run, **options)
