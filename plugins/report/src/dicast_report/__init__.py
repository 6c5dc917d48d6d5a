"""Reports that a person looks at: one HTML file, Markdown, a badge."""

from __future__ import annotations

from dicast import hookimpl

from .badge import Badge
from .html import Html
from .markdown import Markdown

__all__ = ["Badge", "Html", "Markdown"]


@hookimpl
def dicast_sinks() -> list[type]:
    """Offer the reports."""
    return [Html, Markdown, Badge]
