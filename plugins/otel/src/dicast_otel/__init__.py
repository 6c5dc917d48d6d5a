"""OpenTelemetry spans as conversations."""

from __future__ import annotations

from dicast import hookimpl

from .spans import Spans

__all__ = ["Spans"]


@hookimpl
def dicast_sources() -> list[type]:
    """Offer ``otel/spans``."""
    return [Spans]
