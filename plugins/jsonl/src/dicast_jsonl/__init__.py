"""The event stream as JSON lines."""

from __future__ import annotations

from dicast import hookimpl

from .events import Events

__all__ = ["Events"]


@hookimpl
def dicast_sinks() -> list[type[Events]]:
    """Offer the file of events."""
    return [Events]
