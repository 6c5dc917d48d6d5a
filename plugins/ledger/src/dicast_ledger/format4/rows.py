"""The table ``blocks``: its columns, its statements, and its newest row."""

from __future__ import annotations

import sqlite3

from dicast.toolkit.ledger_lines.blocks import COLUMNS
from dicast.toolkit.ledger_lines.chain import START

ROW = ", ".join(COLUMNS)
BLOCKS_TABLE = """CREATE TABLE blocks (first INTEGER PRIMARY KEY, last INTEGER, lines INTEGER, run_id TEXT, types TEXT, low TEXT, high TEXT,
    began TEXT, ended TEXT, prev BLOB, digest BLOB, marks BLOB, columns BLOB, size INTEGER, body BLOB)"""
INSERT = f"INSERT INTO blocks ({ROW}) VALUES ({', '.join('?' * len(COLUMNS))})"


def newest(connection: sqlite3.Connection) -> tuple[int, bytes] | None:
    """Return the number of the last event and the digest of the last line, or None for an empty ledger.

    :raises sqlite3.DatabaseError: if the newest block was changed.
    """
    row = connection.execute("SELECT last, digest FROM blocks ORDER BY first DESC LIMIT 1").fetchone()
    if row is None:
        return None
    last, digest = row
    if not (isinstance(last, int) and isinstance(digest, bytes) and len(digest) == len(START)):
        raise sqlite3.DatabaseError("the newest block was changed: run dicast ledger verify")
    return last, digest
