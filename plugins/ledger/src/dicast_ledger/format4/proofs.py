"""The proof of a verdict in a ledger of format 4."""

from __future__ import annotations

import sqlite3
from typing import Any

import orjson

from dicast import LedgerError
from dicast.toolkit.ledger_lines.blocks import lines_in
from dicast.toolkit.ledger_lines.chain import chained, leaf_of
from dicast.toolkit.ledger_lines.lines import events_in
from dicast.toolkit.ledger_lines.proofs import VERDICT_TYPES, is_about, proof_of, unknown_verdict

from .reading import Makers
from .texts import Texts

_TYPES = " OR ".join(f"instr(types, '{type_}')" for type_ in VERDICT_TYPES)


def prove(connection: sqlite3.Connection, eval_id: str, until: int | None) -> dict[str, Any]:
    """Return the proof of the verdict or failure with this id, up to the newest line, or up to the line whose last event has the number *until*.

    :raises LedgerError: if the ledger does not have it.
    :raises ValueError: if a block cannot be read.
    """
    needle, makers = orjson.dumps(eval_id), Makers(connection)
    (end,) = connection.execute("SELECT coalesce(max(last), 0) FROM blocks").fetchone() if until is None else (until,)
    for first, prev, size, body in connection.execute(
        f"SELECT first, prev, size, body FROM blocks WHERE first <= ? AND ({_TYPES}) ORDER BY first DESC", (end,)
    ):
        lines = lines_in(size, body)
        for place, line in enumerate(lines):
            if needle in line and is_about(orjson.loads(line), eval_id, makers):
                before, _ = chained(prev, map(leaf_of, lines[:place]))
                later, digest = _later(connection, first, place, end, makers, before)
                return proof_of(line, makers, Texts(connection).get, before, later, (end, digest))
    raise LedgerError(unknown_verdict(eval_id))


def _later(
    connection: sqlite3.Connection, first: int, place: int, end: int, makers: Makers, digest: bytes
) -> tuple[list[bytes], bytes]:
    """Return the leaves of the lines up to the event *end* after the line at *place* of the block *first*, and the digest after them.

    *digest* is the digest before this line.

    :raises LedgerError: if no line ends with the event *end*.
    """
    leaves = list[bytes]()
    for start, last, size, body in connection.execute(
        "SELECT first, last, size, body FROM blocks WHERE first BETWEEN ? AND ? ORDER BY first", (first, end)
    ):
        seq = start - 1
        for number, line in enumerate(lines_in(size, body)):
            if last > end and seq >= end:
                break
            seq += events_in(orjson.loads(line), makers) if last > end else 0
            if start > first or number >= place:
                leaves.append(leaf_of(line))
        if last > end and seq != end:
            raise LedgerError(f"no line ends with event {end}")
    digest, _ = chained(digest, leaves)
    return leaves[1:], digest
