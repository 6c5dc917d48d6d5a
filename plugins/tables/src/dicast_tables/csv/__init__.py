"""The plugin ``csv``: verdicts and records as CSV, safe to open in a spreadsheet."""

from __future__ import annotations

from dicast import hookimpl

from .rows import Rows

__all__ = ["Rows"]

former_distribution = "dicast-csv"
"""Distribution that had the plugin before :mod:`dicast_tables`; fingerprints still use this name."""


@hookimpl
def dicast_sinks() -> list[type[Rows]]:
    """Return the sink ``csv/rows``."""
    return [Rows]
