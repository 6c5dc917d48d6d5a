"""Which of a ledger's subjects are to be judged again, found without holding them in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Self

import attrs

from dicast import Entry

from .history import moment

_BATCH = 5000
_TABLES = """
CREATE TABLE reads (id TEXT PRIMARY KEY, seq INTEGER, run TEXT, session TEXT, at TEXT, digest TEXT) WITHOUT ROWID;
CREATE TABLE ends (run TEXT, session TEXT, id TEXT, at TEXT, PRIMARY KEY (run, session, id)) WITHOUT ROWID;
CREATE TABLE live (run TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE chosen (seq INTEGER PRIMARY KEY, run TEXT, session TEXT, id TEXT, digest TEXT);
CREATE VIEW subjects AS SELECT seq, run, session, id, digest, coalesce(ends.at, reads.at) AS happened
FROM reads LEFT JOIN ends USING (run, session, id);
"""
_READ = "INSERT OR REPLACE INTO reads VALUES (?, ?, ?, ?, ?, ?)"
_END = "INSERT OR REPLACE INTO ends VALUES (?, ?, ?, ?)"
_CHOOSE = "INSERT INTO chosen SELECT seq, run, session, id, digest FROM subjects WHERE happened BETWEEN ? AND ?"
_PARTS = """
SELECT run, CASE WHEN session != '' AND run IN (SELECT run FROM live) THEN session END AS part, max(seq)
FROM chosen GROUP BY run, part ORDER BY min(seq)
"""


@attrs.frozen
class Part:
    """The rows that are read together, up to *last*: a run's, or one *session*'s where it was told live, mixed with others."""

    run_id: str
    session: str | None
    last: int


class Choice:
    """Notes in a first pass over a ledger, oldest first, when each subject was last read, and when it happened."""

    def __init__(self) -> None:
        self._reads: list[tuple[object, ...]] = []
        self._ends: list[tuple[object, ...]] = []
        self._database = sqlite3.connect("", isolation_level=None)  # "" is a file without a name, gone at the end
        self._database.executescript(f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; {_TABLES}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._database.close()

    def note_live(self, run_id: str) -> None:
        """Note that a run recorded its trace events as they came."""
        self._database.execute("INSERT OR REPLACE INTO live VALUES (?)", (run_id,))

    def note_read(self, read: Entry) -> None:
        """Note that a subject was read."""
        event = read.event
        where = (event.subject_id, read.seq, event.run_id, event.session_id or "")
        self._reads.append((*where, moment(event.time), event.payload["digest"]))
        self._flush(_BATCH)

    def note_end(self, end: Entry, subject_id: object) -> None:
        """Note that *end* is, so far, the last thing that happened to a subject."""
        event = end.event
        self._ends.append((event.run_id, event.session_id or "", str(subject_id), moment(event.time)))
        self._flush(_BATCH)

    def choose(self, since: str, until: str) -> int:
        """End the first pass; return how many subjects happened between the two times, both included."""
        self._flush(1)
        self._database.execute("DELETE FROM chosen")
        return self._database.execute(_CHOOSE, (since, until)).rowcount

    def extent(self) -> tuple[int, str, str]:
        """How many subjects there are at any time, and when the first and the last of them happened."""
        found: tuple[int, str, str] = self._database.execute(
            "SELECT count(*), min(happened), max(happened) FROM subjects"
        ).fetchone()
        return found

    def parts(self) -> Iterator[Part]:
        """The parts in which the chosen subjects are to be read, the oldest first."""
        for row in self._database.execute(_PARTS):
            yield Part(*row)

    def digests(self) -> Iterator[tuple[str, str]]:
        """Each chosen subject's id with the digest of its content."""
        yield from self._database.execute("SELECT id, digest FROM chosen ORDER BY id")

    def __contains__(self, seq: int) -> bool:
        return self._database.execute("SELECT 1 FROM chosen WHERE seq = ?", (seq,)).fetchone() is not None

    def _flush(self, least: int) -> None:
        for statement, rows in ((_READ, self._reads), (_END, self._ends)):
            if len(rows) >= least:
                self._database.execute("BEGIN")  # else each row is a transaction of its own
                self._database.executemany(statement, rows)
                self._database.execute("COMMIT")
                rows.clear()
