"""The database of OpenCode: the tables of sessions, messages and parts, whose data is JSON."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import orjson

from dicast.toolkit.session_reading import Failed, SessionReading
from dicast.toolkit.sessions import Session

from ..values import Record
from .parts import read_session

TABLES = frozenset(("session", "message", "part"))
"""The tables that identify a database of OpenCode."""

_COLUMNS = ("id", "parent_id", "title", "directory", "version")


def read_sessions(reading: SessionReading) -> Iterator[Session | Failed]:
    """Yield the sessions in the order of their creation; a session with broken data is a failed record."""
    try:
        with reading.database() as connection:
            connection.row_factory = sqlite3.Row
            rows = connection.execute("SELECT * FROM session").fetchall()
            for row in sorted(rows, key=lambda row: (row["time_created"], row["id"])):
                info = {name: row[name] for name in row.keys() if name in _COLUMNS}  # noqa: SIM118  # a row is not a mapping
                try:
                    messages = list(_messages(connection, info["id"]))
                except ValueError as error:
                    yield reading.failed(str(info["id"]), f"the data of the session is no JSON: {error}")
                else:
                    yield read_session(info, messages, reading)
                reading.settle(1)
    except sqlite3.Error as error:
        reading.refuse(f"the database cannot be read: {error}", 1)


def _messages(connection: sqlite3.Connection, session_id: str) -> Iterator[Record]:
    """Yield the messages of a session, each with its parts.

    :raises ValueError: if their data are not JSON objects.
    """
    parts: dict[str, list[Record]] = {}
    query = "SELECT message_id, data FROM part WHERE session_id = ? ORDER BY time_created, id"
    for message_id, data in connection.execute(query, (session_id,)):
        parts.setdefault(message_id, []).append(_loaded(data))
    query = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
    for message_id, data in connection.execute(query, (session_id,)):
        yield {"info": _loaded(data), "parts": parts.get(message_id, [])}


def _loaded(data: str | bytes) -> Record:
    value = orjson.loads(data)
    if not isinstance(value, dict):
        raise ValueError("it is no object")  # noqa: TRY004  # the same type as for invalid JSON
    return value
