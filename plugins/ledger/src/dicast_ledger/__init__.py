"""The append-only, hash-chained ledger in SQLite."""

from __future__ import annotations

from dicast import hookimpl

from .component import Sqlite

__all__ = ["Sqlite"]


@hookimpl
def dicast_ledgers() -> list[type[Sqlite]]:
    """Offer ``ledger/sqlite``."""
    return [Sqlite]
