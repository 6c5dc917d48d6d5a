"""Verdicts and records as CSV, safe to open in a spreadsheet."""

from __future__ import annotations

from dicast import hookimpl

from .rows import Rows

__all__ = ["Rows"]


@hookimpl
def dicast_sinks() -> list[type[Rows]]:
    """Offer the table of verdicts."""
    return [Rows]
