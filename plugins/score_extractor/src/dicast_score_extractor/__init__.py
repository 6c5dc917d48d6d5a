"""An extractor of scores."""

from __future__ import annotations

from dicast import hookimpl

from .scores import Scores


@hookimpl
def dicast_extractors() -> list[type]:
    """Return the extractor of this plugin."""
    return [Scores]
