"""Reads scores out of records."""

from __future__ import annotations

from dicast import hookimpl

from .scores import Scores


@hookimpl
def dicast_extractors() -> list[type]:
    """Offer what this plugin has."""
    return [Scores]
