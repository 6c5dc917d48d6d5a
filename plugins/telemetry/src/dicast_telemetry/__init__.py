"""Runs as OpenTelemetry spans with evaluation results, and as lines of a log."""

from __future__ import annotations

from dicast import hookimpl

from .log import Log
from .otel import Otel

__all__ = ["Log", "Otel"]


@hookimpl
def dicast_sinks() -> list[type]:
    """Offer ``telemetry/otel`` and ``telemetry/log``."""
    return [Otel, Log]
