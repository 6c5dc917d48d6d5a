"""Rows from JSON lines and CSV files."""

from __future__ import annotations

from dicast import Source, hookimpl

from .sources import Csv, Jsonl

__all__ = ["Csv", "Jsonl"]


@hookimpl
def dicast_sources() -> list[type[Source]]:
    """Offer ``rows/jsonl`` and ``rows/csv``."""
    return [Jsonl, Csv]
