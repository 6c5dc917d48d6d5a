"""The proof of a verdict in the chain of its run."""

from __future__ import annotations

from typing import Any

import orjson

from dicast import LedgerError
from dicast.toolkit.ledger_lines import chained, events_in, leaf_of, lines_in
from dicast.toolkit.ledger_lines.proofs import VERDICT_TYPES, is_about, proof_of, unknown_verdict

from .reading import Snapshot

_WITH_VERDICT = """SELECT first, run_id, shard, prev, body FROM blocks
    WHERE first <= %s AND types && %s AND strpos(body, %s) > 0 ORDER BY first DESC"""
_OF_CHAIN = "SELECT first, last, body FROM blocks WHERE run_id = %s AND shard = %s AND first >= %s AND first <= %s ORDER BY first"


def prove(snapshot: Snapshot, eval_id: str, until: int | None) -> dict[str, Any]:
    """Return the proof of the verdict or failure with this id, up to the newest line of the chain, or up to the line whose last event has the number *until*.

    :raises LedgerError: if the ledger does not have it.
    :raises ValueError: if a block cannot be read.
    """
    needle, end = orjson.dumps(eval_id), snapshot.newest if until is None else until
    with snapshot.connection.cursor("verdicts") as cursor:
        cursor.itersize = 1
        cursor.execute(_WITH_VERDICT, (end, list(VERDICT_TYPES), needle.decode()))
        for first, run_id, shard, prev, body in cursor:
            lines = lines_in(len(text := body.encode()), text)
            for place, line in enumerate(lines):
                if needle in line and is_about(orjson.loads(line), eval_id, snapshot.makers):
                    before, _ = chained(prev, map(leaf_of, lines[:place]))
                    leaves, last = _leaves(snapshot, (run_id, shard, first, end))
                    if until is not None and last != until:
                        raise LedgerError(f"no line of run {run_id} ends with event {until}")
                    head, _ = chained(before, leaves[place:])
                    return proof_of(
                        line, snapshot.makers, _content(snapshot), before, leaves[place + 1 :], (last, head)
                    )
    raise LedgerError(unknown_verdict(eval_id))


def _leaves(snapshot: Snapshot, bounds: tuple[str, int, int, int]) -> tuple[list[bytes], int]:
    """Return the leaves of the lines of a chain within *bounds*, the run, the shard, and numbers of events, and the number of the last event."""
    leaves, seq, end = list[bytes](), 0, bounds[-1]
    with snapshot.connection.cursor("chain") as cursor:
        cursor.execute(_OF_CHAIN, bounds)
        for first, last, body in cursor:
            seq, text = first - 1, body.encode()
            for line in lines_in(len(text), text):
                if last > end and seq >= end:
                    break
                seq += events_in(orjson.loads(line), snapshot.makers) if last > end else 0
                leaves.append(leaf_of(line))
            seq = last if last <= end else seq
    return leaves, seq


def _content(snapshot: Snapshot) -> Any:
    return lambda digest: snapshot.content([digest]).get(digest)
