"""The plugin ``replay``: a chat model that answers from a file of recorded replies."""

from __future__ import annotations

from dicast import hookimpl

from .chat import Chat

__all__ = ["Chat"]

former_distribution = "dicast-replay"
"""Distribution that had the plugin before it moved to :mod:`dicast_cache`; fingerprints still use this name."""


@hookimpl
def dicast_models() -> list[type[Chat]]:
    """Return the model ``replay/chat``."""
    return [Chat]
