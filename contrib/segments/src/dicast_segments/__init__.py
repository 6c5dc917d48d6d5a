"""The append-only, hash-chained ledger as files in a folder or objects in S3."""

from __future__ import annotations

from dicast import hookimpl

from .component import Ledger

__all__ = ["Ledger"]


@hookimpl
def dicast_ledgers() -> list[type[Ledger]]:
    """Offer ``segments/ledger``."""
    return [Ledger]
