"""A ledger in PostgreSQL that many processes and machines write to."""

from __future__ import annotations

from dicast import hookimpl

from .component import Ledger

__all__ = ["Ledger"]


@hookimpl
def dicast_ledgers() -> list[type[Ledger]]:
    """Offer ``postgres/ledger``."""
    return [Ledger]
