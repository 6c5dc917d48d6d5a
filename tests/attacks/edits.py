"""Edits of a ledger by hand: of its events, which are in the lines of its blocks, or of its tables."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from dicast_ledger import connect

COLUMNS = "id, type, time, run_id, session_id, turn_id, subject_kind, subject_id, sensitivity, payload"


def edit(path: Path, statement: str) -> None:
    """Run *statement* on the ledger. A statement about ``events`` changes the lines of the events; the digests stay."""
    if " events" not in statement:
        with closing(sqlite3.connect(path)) as database:
            database.executescript(statement)
            database.commit()
        return
    with closing(connect(path)) as ledger, closing(sqlite3.connect(":memory:")) as events:
        events.execute(f"CREATE TABLE events (seq INTEGER PRIMARY KEY, {COLUMNS})")
        rows = ledger.execute(f"SELECT seq, {COLUMNS} FROM events ORDER BY seq")
        events.executemany(f"INSERT INTO events VALUES ({', '.join('?' * 11)})", rows)
        (types,) = events.execute("SELECT group_concat(DISTINCT type) FROM events").fetchone()
        events.executescript(statement)
        events.text_factory = bytes
        lines = [line(values) for values in events.execute(f"SELECT {COLUMNS} FROM events ORDER BY seq")]
    body = b"[\n" + b",\n".join(lines) + b"\n]"
    with closing(sqlite3.connect(path)) as database:
        (digest,) = database.execute("SELECT digest FROM blocks ORDER BY first DESC LIMIT 1").fetchone()
        (low, high, began, ended) = database.execute(
            "SELECT min(low), max(high), min(began), max(ended) FROM blocks"
        ).fetchone()
        database.execute("DELETE FROM blocks")
        hints = None, types.replace(",", " "), low, high, began, ended
        row = 1, len(lines), len(lines), *hints, bytes(32), digest, bytes(4 * len(lines)), None, len(body), body
        database.execute(f"INSERT INTO blocks VALUES ({', '.join('?' * len(row))})", row)
        database.commit()


def line(values: tuple[object, ...]) -> bytes:
    """Return the line of an event. A value that is no JSON stays as it is."""
    *columns, payload = values
    return b"[0," + b",".join([*map(written, columns), b"null" if payload is None else bytes(payload)]) + b"]"


def written(value: object) -> bytes:
    try:
        return json.dumps(value.decode() if isinstance(value, bytes) else value).encode()
    except UnicodeDecodeError:
        return b'"' + bytes(value) + b'"'
