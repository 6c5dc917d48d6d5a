"""Runs as OpenTelemetry spans with evaluation results, and as lines of a log."""

from __future__ import annotations

from dicast import hookimpl


@hookimpl
def dicast_sinks() -> list[type]:
    """Offer the sinks."""
    return []
