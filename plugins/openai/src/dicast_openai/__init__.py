"""Chat models behind endpoints that speak the OpenAI chat format."""

from __future__ import annotations

from dicast import hookimpl

from .batch import Batch
from .chat import Chat


@hookimpl
def dicast_models() -> list[type]:
    """Return the chat models of this plugin."""
    return [Chat, Batch]
