"""Reports for people: one HTML file, Markdown, a badge."""

from __future__ import annotations

from dicast import hookimpl

from .badge import Badge
from .html import Html
from .markdown import Markdown

__all__ = ["Badge", "Html", "Markdown"]


@hookimpl
def dicast_sinks() -> list[type]:
    """Return the sinks ``report/badge``, ``report/html`` and ``report/markdown``."""
    return [Html, Markdown, Badge]
