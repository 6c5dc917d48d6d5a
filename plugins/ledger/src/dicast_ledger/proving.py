"""The proof of a verdict by its ledger, or by the ledger of its shard."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import attrs

from dicast import ConfigError, Event, Ledger, LedgerRefused, Query, read_ledger
from dicast.reading import ShardRoot, read_root
from dicast.toolkit.ledger_lines.proofs import VERDICT_TYPES, check_proof, proof_in_shard

_OLD = "only a ledger of format 4 proves verdicts: convert it with dicast ledger convert OLD NEW"


@attrs.frozen
class Found:
    """A proof by the chain of the ledger, the event of the verdict, and the root of the shards of its run."""

    document: dict[str, Any]
    verdict: Event
    root: ShardRoot | None


def prove(place: Path | str | None, eval_id: str) -> tuple[dict[str, Any], str | None]:
    """Return the proof of the verdict *eval_id* in the ledger at *place*, and a note about ledgers of shards that could not be read.

    :raises ConfigError: if the ledger cannot prove verdicts.
    :raises LedgerError: if it does not have the verdict.
    """
    found = read_ledger(place, partial(_look, eval_id=eval_id))
    if found.root is None:
        return found.document, None
    absent = list[str]()
    for index, shard in enumerate(found.root.shards):
        try:
            look = partial(_in_shard, found=found, index=index)
            document = read_ledger(found.root.place(index), look)
        except LedgerRefused:
            absent.append(str(shard["number"]))
            continue
        if document is not None:
            return proof_in_shard(document, found.root.shards, index), None
    shards = f"shard {absent[0]} is" if len(absent) == 1 else f"{len(absent):,} shards are"
    reason = f"{shards} not at the recorded place" if absent else "no shard has the verdict"
    return found.document, f"{reason}, so the proof is of the merged ledger"


def _look(ledger: Ledger, eval_id: str) -> Found:
    document = _proof(ledger, eval_id, None)
    events = check_proof(document).events
    verdict = next(event for event in events if event.type in VERDICT_TYPES and event.payload["eval_id"] == eval_id)
    return Found(document, verdict, read_root(ledger, verdict.run_id))


def _in_shard(ledger: Ledger, found: Found, index: int) -> dict[str, Any] | None:
    """Return the proof by the ledger of the shard *index*; None if it does not have the verdict."""
    assert found.root is not None  # the callers look for shards only then
    shard, verdict = found.root.shards[index], found.verdict
    query = Query(shard["run_id"], VERDICT_TYPES, verdict.subject_kind, verdict.subject_id)
    eval_id = str(verdict.payload["eval_id"])
    if all(entry.event.payload.get("eval_id") != eval_id for entry in ledger.read(query)):
        return None
    document = _proof(ledger, eval_id, shard["head"]["seq"])
    if document["head"] != shard["head"]:
        raise ConfigError(
            f"shard {shard['number']} at {shard['place']} has another digest at event {shard['head']['seq']} than the run recorded: check it with dicast ledger verify"
        )
    return document


def _proof(ledger: Ledger, eval_id: str, until: int | None) -> dict[str, Any]:
    function = getattr(ledger, "prove", None)
    if function is None:
        is_file = getattr(ledger, "path", None) is not None
        raise ConfigError(_OLD if is_file else f"{type(ledger).__name__} has no proofs of verdicts: it has no prove")
    document: dict[str, Any] = function(eval_id, until)
    return document
