"""The chain of formats 2 and 3: the digest of a row, and the check of a whole ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import attrs
import orjson

from dicast import Head, LedgerError, Verification

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

Wrong = tuple[int, str]
"""The number of a row, and its fault."""

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


def verify(connection: sqlite3.Connection, expected: str | None) -> Verification:
    """Check every row of the chain, the tables that readers use, and the file with SQLite's own check.

    *connection* must see one state of the ledger throughout, and its ``text_factory`` must not raise on bytes that are not UTF-8.
    With *expected*, a row must have this digest: without it, a chain whose end was cut off looks complete.
    """
    result, runs, content = _walk(connection, expected)
    if not result.ok:
        return result
    wrong = content or _wrong_run(connection, runs, result.events)
    if wrong is None and (damage := integrity(connection)) is not None:
        wrong = max(1, result.events), damage
    return result if wrong is None else attrs.evolve(result, bad_seq=wrong[0], reason=wrong[1])


def _walk(
    connection: sqlite3.Connection, expected: str | None
) -> tuple[Verification, dict[object, tuple[int, int]], Wrong | None]:
    """Check the chain. Return the result, the first and the last row of each run, and the first content that readers do not find."""
    events, seq, digest, met = 0, 0, START, expected is None
    bad: Wrong | None = None
    unread: Wrong | None = None
    runs: dict[object, tuple[int, int]] = {}
    try:
        link = LINKS[connection.execute("PRAGMA user_version").fetchone()[0]]
        for row in connection.execute(f"SELECT {ROW} FROM events ORDER BY seq"):
            if bad is None and (reason := _fault(row, seq + 1, digest, link)):
                bad = row[0], reason
            events, seq, digest = events + 1, row[0], row[12]
            met = met or digest == expected
            if bad is None:
                runs[row[4]] = runs.get(row[4], (seq, seq))[0], seq
                unread = unread or _wrong_content(connection, row)
    except sqlite3.DatabaseError as error:
        bad = bad or (seq + 1, f"the file is damaged after row {seq}: {error}")
    if bad is None and not met:
        bad = seq + 1, f"no row has the digest {expected}: the end of the ledger was cut off"
    newest = Head(seq, _printable(digest)) if events else None
    return Verification(events, newest, *(bad or (None, None))), runs, unread


def _wrong_content(connection: sqlite3.Connection, row: Row) -> Wrong | None:
    """Return the fault of the table ``contents`` at a row with a content: readers of later rows find the content by it."""
    if row[2] != "subject.read":
        return None
    try:
        payload = orjson.loads(row[10])
        if payload.get("content") is None:
            return None
        stored = connection.execute("SELECT seq FROM contents WHERE key = ?", (key_of(payload),)).fetchone()
    except (LedgerError, AttributeError) as error:
        return row[0], str(error)
    if stored is None or type(stored[0]) is not int or not 0 < stored[0] <= row[0]:
        return row[0], f"the table contents has {stored and stored[0]!r} for the content of row {row[0]}"
    return None


def _wrong_run(connection: sqlite3.Connection, runs: Mapping[object, tuple[int, int]], events: int) -> Wrong | None:
    """Return the first run whose rows are not within its bounds in the table ``runs``. Bounds may be wider, because a batch may have several runs."""
    try:
        stored = {row[0]: row[1:] for row in connection.execute("SELECT run_id, first_seq, last_seq FROM runs")}
    except sqlite3.DatabaseError as error:
        return max(1, events), f"the table runs cannot be read: {error}"
    for run_id in {**runs, **stored}:
        first, last = runs.get(run_id, (0, 0))
        low, high = stored.get(run_id, (0, 0))
        if not (first and type(low) is type(high) is int and 1 <= low <= first and last <= high <= events):
            return first or max(
                1, events
            ), f"run {run_id!r} has rows {first} to {last}, but the table runs has {low!r} to {high!r}"
    return None


def integrity(connection: sqlite3.Connection) -> str | None:
    """Return the damage of the file that SQLite reports, its indexes included, or None."""
    try:
        (report,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        report = str(error)
    return None if report == "ok" else f"SQLite finds the file damaged: {report}"


def has_table(connection: sqlite3.Connection, name: str) -> bool:
    """Return True if the file has the table *name*."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone() is not None


def key_of(payload: Mapping[str, object]) -> int:
    """Return the key of a content: the first 8 bytes of its digest.

    :raises LedgerError: if the payload has no digest.
    """
    digest = payload.get("digest")
    try:
        return int.from_bytes(bytes.fromhex(digest)[:8], "big", signed=True)  # type: ignore[arg-type]  # reported below
    except (TypeError, ValueError) as error:
        raise LedgerError(f"the digest of a subject.read event is hexadecimal text, not {digest!r}") from error


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
