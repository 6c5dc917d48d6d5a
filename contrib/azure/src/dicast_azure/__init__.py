"""Experiments in Azure Monitor."""

from __future__ import annotations

from dicast import hookimpl


@hookimpl
def dicast_sinks() -> list[type]:
    """Offer the sinks."""
    return []
