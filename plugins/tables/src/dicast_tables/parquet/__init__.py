"""The plugin ``parquet``: verdicts and records as a Parquet file."""

from __future__ import annotations

from dicast import hookimpl

from .rows import Rows

__all__ = ["Rows"]

former_distribution = "dicast-parquet"
"""Keeps the fingerprints of the time before :mod:`dicast_tables`."""


@hookimpl
def dicast_sinks() -> list[type[Rows]]:
    """Return the sink ``parquet/rows``."""
    return [Rows]
