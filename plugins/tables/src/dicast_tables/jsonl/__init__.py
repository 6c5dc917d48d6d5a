"""The plugin ``jsonl``: the events of a run, and its records, as JSON lines."""

from __future__ import annotations

from dicast import hookimpl

from .events import Events
from .rows import Rows

__all__ = ["Events", "Rows"]

former_distribution = "dicast-jsonl"
"""Distribution that had the plugin before :mod:`dicast_tables`; fingerprints still use this name."""


@hookimpl
def dicast_sinks() -> list[type]:
    """Return the sinks ``jsonl/events`` and ``jsonl/rows``."""
    return [Events, Rows]
