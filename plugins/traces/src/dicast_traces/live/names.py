"""The ids that name subjects, and the sessions that they are in."""

from __future__ import annotations

import sqlite3
from typing import Self


class Names:
    """Every id of a turn or a tool call so far, on disk, so that memory does not grow with them."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)  # "" is a temporary file
        self._database.executescript(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
            "CREATE TABLE names (kind TEXT, id TEXT, session TEXT, PRIMARY KEY (kind, id)) WITHOUT ROWID"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._database.close()

    def note(self, kind: str, id: str, session_id: str) -> None:
        """Record that *id* names a subject of *kind* in a session."""
        self._database.execute("INSERT OR IGNORE INTO names VALUES (?, ?, ?)", (kind, id, session_id))

    def holder(self, kind: str, id: str) -> str | None:
        """Return the session that has the subject, or None."""
        row = self._database.execute("SELECT session FROM names WHERE kind = ? AND id = ?", (kind, id)).fetchone()
        return None if row is None else str(row[0])
