"""Chat models of many providers, through litellm."""

from __future__ import annotations

from dicast import hookimpl

from .chat import Chat

__all__ = ["Chat"]


@hookimpl
def dicast_models() -> list[type]:
    """Return the chat model ``litellm/chat``."""
    return [Chat]
