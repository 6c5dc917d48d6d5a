"""What a run does, and what it makes of each row, as JSON lines."""

from __future__ import annotations

from dicast import hookimpl

from .events import Events
from .rows import Rows

__all__ = ["Events", "Rows"]


@hookimpl
def dicast_sinks() -> list[type]:
    """Offer the file of events and the file of records."""
    return [Events, Rows]
