"""Evaluation tasks from files, and a metric of their expectations."""

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
