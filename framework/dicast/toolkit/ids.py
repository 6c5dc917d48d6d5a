"""Ids of events."""

from __future__ import annotations

from .._kernel.values.clock import Clock


def stamp() -> tuple[str, str]:
    """Return a new id for an event, a ULID, and its time in ISO 8601 UTC with milliseconds."""
    return Clock().stamp()
