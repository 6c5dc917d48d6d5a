"""Which ids have been seen, kept in a file."""

from __future__ import annotations

from ..._toolkit.temporary import temporary_database


class SeenIds:
    """Which ids have been seen."""

    def __init__(self) -> None:
        self._database = temporary_database(self, "CREATE TABLE ids(kind, id, PRIMARY KEY (kind, id)) WITHOUT ROWID")

    def add(self, kind: str, subject_id: str) -> bool:
        """Note an id; False when it was noted before."""
        return self._database.execute("INSERT OR IGNORE INTO ids VALUES (?, ?)", (kind, subject_id)).rowcount == 1
