"""The proof of a verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import orjson

from dicast import LedgerError, Query
from dicast.toolkit.ledger_lines import START, leaf_of
from dicast.toolkit.ledger_lines.proofs import VERDICT_TYPES, proof_of, unknown_verdict

from .lines import Row

Rows = Callable[[Query, int, int], Iterator[tuple[int, Row]]]
"""Returns the rows of a query with numbers above the second and up to the third argument."""


def prove(rows: Rows, digest_of: Callable[[int], str | None], eval_id: str, end: int) -> dict[str, Any]:
    """Return the proof of the verdict or failure with this id, up to the event *end*.

    :raises LedgerError: if the ledger does not have it.
    """
    digest = digest_of(end)
    if digest is None and end:
        raise LedgerError(f"no event has the number {end}")
    needle = orjson.dumps(eval_id).decode()
    verdicts = rows(Query(types=VERDICT_TYPES, newest_first=True), 0, end)
    candidates = ((seq, row) for seq, row in verdicts if needle in row.payload)
    match = next((item for item in candidates if item[1].event().payload.get("eval_id") == eval_id), None)
    if match is None:
        raise LedgerError(unknown_verdict(eval_id))
    seq, row = match
    prev = START.hex() if seq == 1 else digest_of(seq - 1)
    later = (leaf_of(other.line()) for _, other in rows(Query(), seq, end))
    contents = {row.content_digest: row.content.encode()} if row.content is not None else {}
    return proof_of(row.line(), {}, contents.get, bytes.fromhex(str(prev)), later, (end, bytes.fromhex(str(digest))))
