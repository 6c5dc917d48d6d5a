"""Evaluation tasks from files, and what they expect."""

from __future__ import annotations

from dicast import Metric, Source, hookimpl

from .expected import Expected
from .source import Files

__all__ = ["Expected", "Files"]


@hookimpl
def dicast_sources() -> list[type[Source]]:
    """Offer ``tasksets/files``."""
    return [Files]


@hookimpl
def dicast_metrics() -> list[type[Metric]]:
    """Offer ``tasksets/expected``."""
    return [Expected]
