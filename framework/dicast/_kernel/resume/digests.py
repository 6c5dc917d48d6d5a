"""Digests of the chain of a ledger at single rows."""

from __future__ import annotations

from typing import Any

from ..values import Query


def read_digest(ledger: Any, seq: int) -> str | None:
    """Return the digest of the row *seq* of *ledger*, as ``ledger verify --head`` takes it; None if the ledger has none at this row."""
    if hasattr(ledger, "digest_of"):
        digest: str | None = ledger.digest_of(seq)
        return digest
    entry = next(iter(ledger.read(Query(after=seq - 1, limit=1))), None)
    return entry.digest if entry is not None and entry.seq == seq else None
