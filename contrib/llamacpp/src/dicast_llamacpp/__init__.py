"""Chat models from GGUF files, run in this process."""

from __future__ import annotations

from dicast import hookimpl

from .chat import Chat

__all__ = ["Chat"]


@hookimpl
def dicast_models() -> list[type]:
    """Offer ``llamacpp/chat``."""
    return [Chat]
