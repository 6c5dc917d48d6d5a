"""OpenTelemetry spans as conversations."""

from __future__ import annotations

from dicast import hookimpl

from .receiver import Receiver
from .spans import Spans

__all__ = ["Receiver", "Spans"]


@hookimpl
def dicast_sources() -> list[type]:
    """Offer ``otel/spans`` and ``otel/receiver``."""
    return [Spans, Receiver]
