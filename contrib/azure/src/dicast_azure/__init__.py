"""Experiments as events of Azure Monitor."""

from __future__ import annotations

from dicast import hookimpl

from .monitor import Monitor

__all__ = ["Monitor"]


@hookimpl
def dicast_sinks() -> list[type[Monitor]]:
    """Offer ``azure/monitor``."""
    return [Monitor]
