"""Chat models behind Anthropic's Messages API."""

from __future__ import annotations

from dicast import hookimpl

from .chat import Chat

__all__ = ["Chat"]


@hookimpl
def dicast_models() -> list[type]:
    """Return the chat models of this plugin."""
    return [Chat]
