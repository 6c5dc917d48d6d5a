"""The Merkle tree over the shards of a run: one entry for each shard, and the root of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from .merkle import tree_root


def shard_entry(number: int, run_id: str, count: int, head: Mapping[str, Any]) -> bytes:
    """Return the entry of a shard: ``[number, run_id, count, seq, digest]`` as JSON text without spaces.

    :param number: the number of the shard, from 1.
    :param run_id: the run of the shard in its ledger.
    :param count: the number of its subjects.
    :param head: the number *seq* of the last event of this run, and the *digest* of the chain after it.
    """
    return orjson.dumps([number, run_id, count, head["seq"], head["digest"]])


def shard_entries(shards: Sequence[Mapping[str, Any]]) -> list[bytes]:
    """Return the entries of *shards*, as the event ``shard.rooted`` lists them."""
    return [shard_entry(shard["number"], shard["run_id"], shard["count"], shard["head"]) for shard in shards]


def shards_root(shards: Sequence[Mapping[str, Any]]) -> str:
    """Return the root of the tree over *shards* in hexadecimal digits."""
    return tree_root(shard_entries(shards)).hex()
