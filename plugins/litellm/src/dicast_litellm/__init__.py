"""Chat models of many providers, through litellm."""

from __future__ import annotations

from dicast import hookimpl


@hookimpl
def dicast_models() -> list[type]:
    """Offer what this plugin has."""
    return []
