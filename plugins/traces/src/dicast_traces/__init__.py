"""Agent conversations: trace events and conversations of any format."""

from __future__ import annotations

from dicast import Source, hookimpl

from .events import Events
from .messages import Messages
from .recorded import Recorded

__all__ = ["Events", "Messages", "Recorded"]


@hookimpl
def dicast_sources() -> list[type[Source]]:
    """Offer ``traces/messages``, ``traces/events`` and ``traces/recorded``."""
    return [Messages, Events, Recorded]
