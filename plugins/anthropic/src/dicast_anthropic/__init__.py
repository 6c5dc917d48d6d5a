"""Chat models behind Anthropic's Messages API."""

from __future__ import annotations

from dicast import hookimpl

from .batch import Batch
from .chat import Chat

__all__ = ["Batch", "Chat"]


@hookimpl
def dicast_models() -> list[type]:
    """Return the chat models of this plugin."""
    return [Chat, Batch]
