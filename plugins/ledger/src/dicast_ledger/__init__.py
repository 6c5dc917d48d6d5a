"""The append-only, hash-chained ledger in SQLite."""

from __future__ import annotations

from dicast import hookimpl

from .component import Sqlite
from .format4.connecting import connect

__all__ = ["Sqlite", "connect"]


@hookimpl
def dicast_ledgers() -> list[type[Sqlite]]:
    """Offer ``ledger/sqlite``."""
    return [Sqlite]
