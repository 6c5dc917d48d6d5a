"""Agent conversations: trace events and chat transcripts."""

from __future__ import annotations

from dicast import Source, hookimpl

from .events import Events
from .messages import Messages

__all__ = ["Events", "Messages"]


@hookimpl
def dicast_sources() -> list[type[Source]]:
    """Offer ``traces/messages`` and ``traces/events``."""
    return [Messages, Events]
