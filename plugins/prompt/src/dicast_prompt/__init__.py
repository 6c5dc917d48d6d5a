"""Tasks that send rows to a language model."""

from __future__ import annotations

from dicast import hookimpl

from .chat import Chat


@hookimpl
def dicast_tasks() -> list[type]:
    """Offer ``prompt/chat``."""
    return [Chat]
