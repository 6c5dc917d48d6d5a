"""Reports that a person looks at: one HTML file, Markdown, a badge."""

from __future__ import annotations

from dicast import Sink, hookimpl

from .html import Html

__all__ = ["Html"]


@hookimpl
def dicast_sinks() -> list[type[Sink]]:
    """Offer the page."""
    return [Html]
