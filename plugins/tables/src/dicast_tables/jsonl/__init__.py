"""The plugin ``jsonl``: the events of a run, and its records, as JSON lines."""

from __future__ import annotations

from dicast import hookimpl

from .events import Events
from .rows import Rows

__all__ = ["Events", "Rows"]

former_distribution = "dicast-jsonl"
"""Keeps the fingerprints of the time before :mod:`dicast_tables`."""


@hookimpl
def dicast_sinks() -> list[type]:
    """Return the sinks ``jsonl/events`` and ``jsonl/rows``."""
    return [Events, Rows]
