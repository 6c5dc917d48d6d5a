"""The chain: what a row's digest covers, and checking a whole ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import attrs
import orjson

from dicast import Head, LedgerError, Verification

from .spending import SPENDING_TABLES, Spending

START = "0" * 64
"""The first row's ``prev``."""

COLUMNS = (
    "id",
    "type",
    "time",
    "run_id",
    "session_id",
    "turn_id",
    "subject_kind",
    "subject_id",
    "sensitivity",
)
"""What a digest covers beside the payload."""

ROW = ", ".join(("seq", *COLUMNS, "payload", "prev", "digest"))

Row = tuple[Any, ...]
"""The values of :data:`ROW`."""

Link = Callable[[str, Sequence[str | None], bytes], str]
"""The digest of a row after the digest *prev*, from the values of :data:`COLUMNS` and its payload; it raises TypeError for what
cannot be JSON text in UTF-8.
"""


def payload_of(row: Row, path: Path) -> dict[str, Any]:
    """The payload of a row of the file *path*.

    :raises LedgerError: when the row is none that a ledger has written.
    """
    try:
        found = orjson.loads(row[10])
    except ValueError as error:
        raise LedgerError(f"row {row[0]} of {path} was changed ({error}): run dicast ledger verify") from error
    if not isinstance(found, dict) or any(isinstance(column, bytes) for column in row):
        raise LedgerError(f"row {row[0]} of {path} was changed: run dicast ledger verify")
    return found


def _link_list(prev: str, values: Sequence[str | None], payload: bytes) -> str:
    """SHA-256 of prev, the values as a JSON list, and the payload as it is stored, with a newline between them."""
    return sha256(b"%b\n%b\n%b" % (prev.encode(), orjson.dumps(values), payload)).hexdigest()


def _link_object(prev: str, values: Sequence[str | None], payload: bytes) -> str:
    """SHA-256 of prev, a newline, and the canonical JSON of all columns as an object, the payload as a string in it."""
    columns = {**dict(zip(COLUMNS, values, strict=True)), "payload": payload.decode()}
    return sha256(b"%b\n%b" % (prev.encode(), orjson.dumps(columns, option=orjson.OPT_SORT_KEYS))).hexdigest()


LINKS: Mapping[int, Link] = {2: _link_object, 3: _link_list}
"""How the rows of a ledger are linked, by the version of its format."""


def link_of(connection: sqlite3.Connection) -> Link:
    """How the rows of this ledger are linked."""
    return LINKS[connection.execute("PRAGMA user_version").fetchone()[0]]


def head(connection: sqlite3.Connection) -> Head | None:
    """The newest row, or None in an empty ledger."""
    row = connection.execute("SELECT seq, digest FROM events ORDER BY seq DESC LIMIT 1").fetchone()
    return None if row is None else Head(*row)


def verify(connection: sqlite3.Connection, expected: str | None) -> Verification:
    """Check every row, then that the sums of what was spent follow from them, in constant memory.

    *connection* must see one state of the ledger throughout; its ``text_factory`` must not raise on what is no UTF-8.
    With *expected*, a row with this digest must be there: a chain alone does not show that its tail was cut.
    """
    found = _walk(connection, expected)
    if not found.ok:
        return found
    try:
        reason = _wrong_sums(connection)
    except LedgerError as error:  # a spend event that the chain vouches for, but that means nothing
        reason = str(error)
    return found if reason is None else attrs.evolve(found, bad_seq=found.events, reason=reason)


def _walk(connection: sqlite3.Connection, expected: str | None) -> Verification:
    events, seq, digest, met = 0, 0, START, expected is None
    bad: tuple[int, str] | None = None
    link = link_of(connection)
    try:
        for row in connection.execute(f"SELECT {ROW} FROM events ORDER BY seq"):
            if bad is None and (reason := _fault(row, seq + 1, digest, link)):
                bad = row[0], reason
            events, seq, digest = events + 1, row[0], row[12]
            met = met or digest == expected
    except sqlite3.DatabaseError as error:
        bad = bad or (seq + 1, f"the file is damaged after row {seq}: {error}")
    if bad is None and not met:
        bad = seq + 1, f"no row has the digest {expected}: the end of the ledger was cut off"
    return Verification(events, Head(seq, digest) if events else None, *(bad or (None, None)))


def _fault(row: Row, seq: int, prev: str, link: Link) -> str | None:
    if row[0] != seq:
        return f"row {seq} is missing" if row[0] > seq else f"row {row[0]} does not belong there"
    if row[11] != prev:
        return "its prev is not the digest of the row before it"
    if float in map(type, row):  # an infinity would be null in JSON, and so be taken for one
        return "it holds a number where text belongs"
    if not isinstance(row[10], str):
        return "its payload is no text"
    try:
        if link(prev, row[1:10], row[10].encode()) != row[12]:
            return "its digest does not match its content"
        orjson.loads(row[10])
    except (TypeError, ValueError) as error:
        return f"it cannot be read as JSON: {error}"
    return None


def _wrong_sums(connection: sqlite3.Connection) -> str | None:
    with closing(sqlite3.connect("")) as scratch:  # a temporary file of SQLite's own: memory stays constant
        scratch.executescript(SPENDING_TABLES)
        replayed = Spending(scratch)
        for seq, run_id, kind, payload in _spend_events(connection):
            replayed.record(seq, run_id, kind, orjson.loads(payload))
        replayed.write()
        difference = Spending(connection).differing(replayed)
    return difference and f"the sums kept beside the chain do not follow from it: {difference}"


def _spend_events(connection: sqlite3.Connection) -> Iterator[tuple[int, str, str, str]]:
    return connection.execute(
        "SELECT seq, run_id, type, payload FROM events WHERE type >= 'spend.' AND type < 'spend/' ORDER BY seq"
    )
