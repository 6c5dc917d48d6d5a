"""Replies that are remembered."""

from __future__ import annotations

from dicast import hookimpl

from .chat import Chat

__all__ = ["Chat"]


@hookimpl
def dicast_models() -> list[type[Chat]]:
    """Offer ``cache/chat``."""
    return [Chat]
