"""The judged texts, once per digest: the table ``contents`` has the row that holds each text."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path

import orjson

from dicast import LedgerError

CONTENTS_TABLE = "CREATE TABLE contents (key INTEGER PRIMARY KEY, seq INTEGER);"


def known_contents(connection: sqlite3.Connection, read: Mapping[int, Mapping[str, object]]) -> set[int]:
    """Return the rows among *read* whose content an earlier row holds, and record the contents of the other rows.

    *read* has the payloads of ``subject.read`` by their row.
    """
    # sorted, because neighbours share pages
    keys = sorted((key_of(payload), seq) for seq, payload in read.items() if payload.get("content") is not None)
    added = connection.executemany("INSERT OR IGNORE INTO contents VALUES (?, ?)", keys)
    if added.rowcount == len(keys):
        return set()
    digests = set()
    for key, seq in keys:
        (first,) = connection.execute("SELECT seq FROM contents WHERE key = ?", (key,)).fetchone()
        if first != seq and _holder(connection, first, read).get("digest") == read[seq]["digest"]:
            digests.add(seq)
    return digests


def _holder(connection: sqlite3.Connection, seq: int, read: Mapping[int, Mapping[str, object]]) -> Mapping[str, object]:
    if seq in read:
        return read[seq]
    row = connection.execute("SELECT payload FROM events WHERE seq = ?", (seq,)).fetchone()
    if row is None:
        raise LedgerError(f"row {seq}, which the contents table names, is missing: run dicast ledger verify")
    payload: Mapping[str, object] = orjson.loads(row[0])
    return payload


def stored_content(connection: sqlite3.Connection, path: Path, payload: Mapping[str, object]) -> object:
    """Return the content of a ``subject.read`` *payload* that was written without its content; None if the ledger at *path* stores no contents."""
    row = connection.execute(
        "SELECT payload FROM events WHERE seq = (SELECT seq FROM contents WHERE key = ?)", (key_of(payload),)
    ).fetchone()
    if row is None:
        return None
    first = orjson.loads(row[0])
    if first["digest"] != payload["digest"]:
        raise LedgerError(
            f"the contents table of {path} names a row with another content than {payload['digest']}: run dicast ledger verify"
        )
    return first["content"]


def key_of(payload: Mapping[str, object]) -> int:
    """Return the first 8 bytes of the digest. The whole digest would make the index three times as large and as slow to write.

    Two digests with the same beginning do no harm: the content of the second digest is stored with each of its rows.
    """
    digest = payload.get("digest")
    try:
        return int.from_bytes(bytes.fromhex(digest)[:8], "big", signed=True)  # type: ignore[arg-type]  # reported below
    except (TypeError, ValueError) as error:
        raise LedgerError(f"the digest of a subject.read event is hexadecimal text, not {digest!r}") from error
