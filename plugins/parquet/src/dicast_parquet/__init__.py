"""Verdicts and records as a Parquet file."""

from __future__ import annotations

from dicast import hookimpl

from .rows import Rows

__all__ = ["Rows"]


@hookimpl
def dicast_sinks() -> list[type[Rows]]:
    """Offer the table."""
    return [Rows]
