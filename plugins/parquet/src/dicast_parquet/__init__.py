"""Records and verdicts as a Parquet file."""

from __future__ import annotations

from dicast import hookimpl


@hookimpl
def dicast_sinks() -> list[type]:
    """Offer the sinks."""
    return []
