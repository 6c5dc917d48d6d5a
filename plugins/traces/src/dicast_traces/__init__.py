"""Agent conversations: trace events and conversations of any format."""

from __future__ import annotations

from dicast import Source, hookimpl

from .events import Events
from .joined import Joined
from .messages import Messages
from .recorded import Recorded
from .sample import Sample

__all__ = ["Events", "Joined", "Messages", "Recorded", "Sample"]


@hookimpl
def dicast_sources() -> list[type[Source]]:
    """Offer the sources of conversations and traces, and the sources that join and sample other sources."""
    return [Messages, Events, Recorded, Joined, Sample]
