"""The plugin ``parquet``: verdicts and records as a Parquet file."""

from __future__ import annotations

from dicast import hookimpl

from .rows import Rows

__all__ = ["Rows"]

former_distribution = "dicast-parquet"
"""Distribution that had the plugin before :mod:`dicast_tables`; fingerprints still use this name."""


@hookimpl
def dicast_sinks() -> list[type[Rows]]:
    """Return the sink ``parquet/rows``."""
    return [Rows]
