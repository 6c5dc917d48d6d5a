"""Logs of Inspect AI as sessions with their recorded scores."""

from __future__ import annotations

from dicast import Source, hookimpl

from .log import Log

__all__ = ["Log"]


@hookimpl
def dicast_sources() -> list[type[Source]]:
    """Offer ``inspect/log``."""
    return [Log]
