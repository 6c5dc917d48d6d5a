"""The chain: the digest of a row, and the check of a whole ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import attrs
import orjson

from dicast import Head, LedgerError, Verification

from .columns import covered
from .side_tables import SideTables, Wrong, integrity

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
"""The columns that a digest covers in addition to the payload."""

NAMES = ("seq", *COLUMNS, "payload", "prev", "digest")
ROW = ", ".join(NAMES)

Row = tuple[Any, ...]
"""The values of :data:`ROW`."""

Link = Callable[[str, Sequence[str | None], bytes], str]
"""Function that returns the digest of a row from the digest *prev*, the values of :data:`COLUMNS`, and the payload.

It raises TypeError for a value that cannot be JSON text in UTF-8.
"""


def payload_of(row: Row, path: Path) -> dict[str, Any]:
    """Return the payload of a row of the file *path*.

    :raises LedgerError: if no ledger has written the row.
    """
    try:
        payload = orjson.loads(row[10])
    except ValueError as error:
        raise LedgerError(f"row {row[0]} of {path} was changed ({error}): run dicast ledger verify") from error
    if not isinstance(payload, dict) or any(isinstance(column, bytes) for column in row):
        raise LedgerError(f"row {row[0]} of {path} was changed: run dicast ledger verify")
    return payload


def refuse_changed(row: Row, link: Link, path: Path) -> None:
    """Check that the digest of *row* matches its content.

    :raises LedgerError: with the number of the row.
    """
    prev, digest = row[11:]
    try:
        # JSON would write an infinity as null, so a changed row could have the same digest
        is_valid = float not in map(type, row) and link(prev, row[1:10], row[10].encode()) == digest
    except (TypeError, AttributeError, ValueError):  # a column is not text
        is_valid = False
    if not is_valid:
        raise LedgerError(f"row {row[0]} of {path} was changed: run dicast ledger verify")


def _link_list(prev: str, values: Sequence[str | None], payload: bytes) -> str:
    """Return the SHA-256 of *prev*, the values as a JSON list, and the payload as stored, joined by newlines."""
    return sha256(b"%b\n%b\n%b" % (prev.encode(), orjson.dumps(values), payload)).hexdigest()


def _link_object(prev: str, values: Sequence[str | None], payload: bytes) -> str:
    """Return the SHA-256 of *prev*, a newline, and the canonical JSON of an object with all columns and the payload as a string."""
    columns = {**dict(zip(COLUMNS, values, strict=True)), "payload": payload.decode()}
    return sha256(b"%b\n%b" % (prev.encode(), orjson.dumps(columns, option=orjson.OPT_SORT_KEYS))).hexdigest()


LINKS: Mapping[int, Link] = {2: _link_object, 3: _link_list}
"""Function that links the rows of a ledger, by the version of its format."""


def link_of(connection: sqlite3.Connection) -> Link:
    """Return the rule that links the rows of this ledger."""
    return LINKS[connection.execute("PRAGMA user_version").fetchone()[0]]


def head(connection: sqlite3.Connection) -> Head | None:
    """Return the newest row, or None for an empty ledger."""
    row = connection.execute("SELECT seq, digest FROM events ORDER BY seq DESC LIMIT 1").fetchone()
    return None if row is None else Head(*row)


def verify(connection: sqlite3.Connection, expected: str | None) -> Verification:
    """Check every row of the chain, the side tables against the rows, and the file with SQLite's own check; in constant memory.

    *connection* must see one state of the ledger throughout, and its ``text_factory`` must not raise on bytes that are not UTF-8.
    With *expected*, a row must have this digest: without it, a chain whose end was cut off looks complete.
    """
    with closing(sqlite3.connect("")) as scratch:  # a temporary file of SQLite's own: memory stays constant
        side_tables = SideTables(scratch, _covered(connection))
        result, unaccounted = _walk(connection, expected, side_tables)
        if not result.ok:
            return result
        wrong = unaccounted or side_tables.find_fault(connection, result.events)
        if wrong is None and (reason := integrity(connection)) is not None:
            wrong = Wrong(None, reason)
    return (
        result
        if wrong is None
        else attrs.evolve(result, bad_seq=wrong.seq or max(1, result.events), reason=wrong.reason)
    )


def _covered(connection: sqlite3.Connection) -> int:
    """Return the last row that the columns cover; 0 if it cannot be read, which the later comparison reports."""
    try:
        return covered(connection)[0]
    except sqlite3.DatabaseError:
        return 0


def _walk(
    connection: sqlite3.Connection, expected: str | None, side_tables: SideTables
) -> tuple[Verification, Wrong | None]:
    """Check the chain. Return the result, and the first row that is part of the chain but has no valid meaning."""
    events, seq, digest, met = 0, 0, START, expected is None
    bad: tuple[int, str] | None = None
    unaccounted: Wrong | None = None
    link = link_of(connection)
    try:
        for row in connection.execute(f"SELECT {ROW} FROM events ORDER BY seq"):
            if bad is None and (reason := _fault(row, seq + 1, digest, link)):
                bad = row[0], reason
            events, seq, digest = events + 1, row[0], row[12]
            met = met or digest == expected
            if bad is None and unaccounted is None:
                unaccounted = _add_to(side_tables, row)
    except sqlite3.DatabaseError as error:
        bad = bad or (seq + 1, f"the file is damaged after row {seq}: {error}")
    if bad is None and not met:
        bad = seq + 1, f"no row has the digest {expected}: the end of the ledger was cut off"
    newest = Head(seq, _printable(digest)) if events else None
    return Verification(events, newest, *(bad or (None, None))), unaccounted


def _add_to(side_tables: SideTables, row: Row) -> Wrong | None:
    """Add *row* to the expected side tables; return the fault of a row that cannot be added."""
    try:
        side_tables.add(row)
    except LedgerError as error:
        return Wrong(row[0], str(error))
    return None


def _printable(digest: object) -> str:
    """Return a stored digest as printable text; a changed ledger may have any value in its place."""
    text = digest if isinstance(digest, str) else repr(digest)
    return text.encode("utf-8", "backslashreplace").decode()


def _fault(row: Row, seq: int, prev: str, link: Link) -> str | None:
    if row[0] != seq:
        return f"row {seq} is missing" if row[0] > seq else f"row {row[0]} does not belong there"
    if bytes in map(type, row):
        place = list(map(type, row)).index(bytes)
        return f"its {NAMES[place]} is binary data, where text belongs"
    if row[11] != prev:
        return "its prev is not the digest of the row before it"
    if float in map(type, row):  # JSON would write an infinity as null, so a changed row could have the same digest
        return "it holds a number where text belongs"
    if not isinstance(row[10], str):
        return "its payload is not text"
    try:
        if link(prev, row[1:10], row[10].encode()) != row[12]:
            return "its digest does not match its content"
        orjson.loads(row[10])
    except (TypeError, ValueError) as error:
        return f"it cannot be read as JSON: {error}"
    return None
