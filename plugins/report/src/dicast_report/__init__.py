"""Reports that a person looks at: one HTML file, Markdown, a badge."""

from __future__ import annotations

from dicast import hookimpl

from .badge import Badge
from .markdown import Markdown

__all__ = ["Badge", "Markdown"]


@hookimpl
def dicast_sinks() -> list[type]:
    """Offer the reports."""
    return [Badge, Markdown]
