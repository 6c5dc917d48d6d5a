"""Messages about runs for a chat channel or another webhook."""

from __future__ import annotations

from dicast import hookimpl

from .webhook import Webhook

__all__ = ["Webhook"]


@hookimpl
def dicast_sinks() -> list[type[Webhook]]:
    """Return the sink of messages."""
    return [Webhook]
