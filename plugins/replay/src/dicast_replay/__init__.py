"""Recorded replies in place of a model."""

from __future__ import annotations

from dicast import hookimpl


@hookimpl
def dicast_models() -> list[type]:
    """Offer what this plugin has."""
    return []
