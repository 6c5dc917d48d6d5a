"""Roots of runs in shards: one digest for the ledgers of all shards, as the run recorded it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...toolkit.shard_tree import shards_root
from ..classes import frozen
from ..contract.protocols import Ledger
from ..events import SHARD_ROOTED
from ..pipeline.ledger_path import ledger_place
from ..values import Entry, Query


@frozen
class ShardRoot:
    """Root of the shards of a run.

    :param run_id: the run.
    :param seq: the row of the ledger that has the root.
    :param root: the digest in hexadecimal digits.
    :param shards: the shards, as the event ``shard.rooted`` lists them.
    """

    run_id: str
    seq: int
    root: str
    shards: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, entry: Entry) -> ShardRoot:
        """Return the root in an event ``shard.rooted``."""
        payload: Any = entry.event.payload
        return cls(entry.event.run_id, entry.seq, payload["root"], payload["shards"])

    def place(self, index: int) -> Path | str:
        """Return the place of the ledger of the shard *index*, as ``--ledger`` takes it."""
        return ledger_place(str(self.shards[index]["place"]))

    def follows(self) -> bool:
        """Return True if the root follows from the entries of the shards."""
        try:
            return shards_root(self.shards) == self.root
        except (LookupError, TypeError):
            return False


def read_root(ledger: Ledger, run_id: str) -> ShardRoot | None:
    """Return the newest root of the run; None without one."""
    entries = ledger.read(Query(run_id, (SHARD_ROOTED,), newest_first=True, limit=1))
    return next(map(ShardRoot.of, entries), None)


def read_roots(ledger: Ledger) -> Iterator[ShardRoot]:
    """Yield the roots of all runs, in the order of the ledger."""
    return map(ShardRoot.of, ledger.read(Query(types=(SHARD_ROOTED,))))
