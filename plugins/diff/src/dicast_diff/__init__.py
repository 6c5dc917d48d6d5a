"""Truth metrics that compare an output with its reference."""

from __future__ import annotations

from dicast import Metric, hookimpl

from .match import Match

__all__ = ["Match"]


@hookimpl
def dicast_metrics() -> list[type[Metric]]:
    """Offer the comparison."""
    return [Match]
