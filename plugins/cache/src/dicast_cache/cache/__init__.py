"""The plugin ``cache``: a chat model that is asked each request once."""

from __future__ import annotations

from dicast import hookimpl

from .chat import Chat

__all__ = ["Chat"]


@hookimpl
def dicast_models() -> list[type[Chat]]:
    """Return the model ``cache/chat``."""
    return [Chat]
