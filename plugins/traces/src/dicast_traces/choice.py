"""Selection of the subjects in a ledger to judge again, without holding them in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Self

import attrs

from dicast import Entry

from .history import moment

_BATCH = 5000
STARTED, FINISHED, COMPLETE = 1, 2, 3
"""Flags for the parts of a subject that a trace event provides."""

_TABLES = """
CREATE TABLE reads (id TEXT PRIMARY KEY, seq INTEGER, run TEXT, session TEXT, at TEXT, digest TEXT) WITHOUT ROWID;
CREATE TABLE ends (run TEXT, session TEXT, id TEXT, at TEXT, seq INTEGER, parts INTEGER, turn TEXT,
    PRIMARY KEY (run, session, id)) WITHOUT ROWID;
CREATE TABLE completed (run TEXT, turn TEXT, PRIMARY KEY (run, turn)) WITHOUT ROWID;
CREATE TABLE live (run TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE chosen (seq INTEGER PRIMARY KEY, run TEXT, session TEXT, id TEXT, digest TEXT);
CREATE VIEW subjects AS SELECT reads.seq, run, session, id, digest, coalesce(ends.at, reads.at) AS happened
FROM reads LEFT JOIN ends USING (run, session, id);
CREATE VIEW told AS SELECT max(seq) AS seq, run, session, id, at AS happened
FROM ends LEFT JOIN completed USING (run, turn)
WHERE (parts = 3 OR (parts = 1 AND completed.turn IS NOT NULL)) AND id NOT IN (SELECT id FROM reads) GROUP BY id;
CREATE TABLE traced (run TEXT, session TEXT, id TEXT, seq INTEGER, PRIMARY KEY (run, session, id)) WITHOUT ROWID;
"""
_SHARED = """
SELECT id, min(session), max(session) FROM ends LEFT JOIN completed USING (run, turn)
WHERE (parts = 3 OR (parts = 1 AND completed.turn IS NOT NULL)) AND id NOT IN (SELECT id FROM reads)
GROUP BY run, id HAVING count(*) > 1 ORDER BY id LIMIT 1
"""
_READ = "INSERT OR REPLACE INTO reads VALUES (?, ?, ?, ?, ?, ?)"
_END = (
    "INSERT INTO ends VALUES (?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT DO UPDATE SET at = excluded.at, seq = excluded.seq, parts = parts | excluded.parts"
)
_CHOOSE = "INSERT INTO chosen SELECT seq, run, session, id, digest FROM subjects WHERE happened BETWEEN ? AND ?"
_TRACE = "INSERT INTO traced SELECT run, session, id, seq FROM told WHERE happened BETWEEN ? AND ?"
_PARTS = """
SELECT run, CASE WHEN session != '' AND run IN (SELECT run FROM live) THEN session END AS part, max(seq)
FROM chosen GROUP BY run, part ORDER BY min(seq)
"""


@attrs.frozen
class Part:
    """Rows that are read together, up to the row *last*: the rows of a run, or of one *session* in a live run, whose sessions are mixed."""

    run_id: str
    session: str | None
    last: int


class Choice:
    """Records, in a first pass over a ledger from the oldest row on, the last reading of each subject and its time; then selects by time."""

    def __init__(self) -> None:
        self._reads: list[tuple[object, ...]] = []
        self._ends: list[tuple[object, ...]] = []
        self._database = sqlite3.connect("", isolation_level=None)  # "" is a temporary file
        self._database.executescript(f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; {_TABLES}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._database.close()

    def note_live(self, run_id: str) -> None:
        """Record that a run is live: it recorded its trace events as they arrived."""
        self._database.execute("INSERT OR REPLACE INTO live VALUES (?)", (run_id,))

    def note_read(self, read: Entry) -> None:
        """Record the reading of a subject."""
        event = read.event
        where = (event.subject_id, read.seq, event.run_id, event.session_id or "")
        self._reads.append((*where, moment(event.time), event.payload["digest"]))
        self._flush(_BATCH)

    def note_end(self, end: Entry, subject_id: object, parts: int = COMPLETE) -> None:
        """Record *end* as the newest event of a subject, and add *parts* to the known parts of the subject."""
        event = end.event
        where = (event.run_id, event.session_id or "", str(subject_id), moment(event.time))
        self._ends.append((*where, end.seq, parts, event.turn_id))
        self._flush(_BATCH)

    def note_completed(self, end: Entry) -> None:
        """Record the end of a turn: its calls without an end are complete then, too."""
        self._database.execute("INSERT OR IGNORE INTO completed VALUES (?, ?)", (end.event.run_id, end.event.turn_id))

    def choose(self, since: str, until: str) -> int:
        """End the first pass, and return the number of subjects with a time from *since* to *until*, both included.

        Subjects that no run has read count too, if their trace is complete.
        """
        self._flush(1)
        self._database.executescript("DELETE FROM chosen; DELETE FROM traced")
        window = (since, until)
        return sum(self._database.execute(choose, window).rowcount for choose in (_CHOOSE, _TRACE))

    def shared(self) -> tuple[str, str, str] | None:
        """Return the first id that belongs to subjects of several sessions in the trace of one run, with two of these sessions."""
        row: tuple[str, str, str] | None = self._database.execute(_SHARED).fetchone()
        return row

    def extent(self) -> tuple[int, str, str]:
        """Return the number of all subjects, and the times of the first and the last of them."""
        row: tuple[int, str, str] = self._database.execute(
            "SELECT count(*), min(happened), max(happened) FROM "
            "(SELECT happened FROM subjects UNION ALL SELECT happened FROM told)"
        ).fetchone()
        return row

    def parts(self) -> Iterator[Part]:
        """Yield the parts in which the chosen subjects are read, the oldest first."""
        for row in self._database.execute(_PARTS):
            yield Part(*row)

    def traces(self) -> Iterator[tuple[str, str, set[str]]]:
        """Yield the traces of subjects that no run has read: run, session, and their ids; the oldest first."""
        sessions = "SELECT run, session FROM traced GROUP BY run, session ORDER BY min(seq)"
        for run, session in self._database.execute(sessions).fetchall():
            ids = self._database.execute("SELECT id FROM traced WHERE run = ? AND session = ?", (run, session))
            yield run, session, {id for (id,) in ids}

    def digests(self) -> Iterator[tuple[str, str]]:
        """Yield the id of each chosen subject with the digest of its content, or with the place of its last known event."""
        yield from self._database.execute("SELECT id, digest FROM chosen ORDER BY id")
        yield from self._database.execute("SELECT id, run || '/' || seq FROM traced ORDER BY id")

    def __contains__(self, seq: int) -> bool:
        return self._database.execute("SELECT 1 FROM chosen WHERE seq = ?", (seq,)).fetchone() is not None

    def _flush(self, least: int) -> None:
        for statement, rows in ((_READ, self._reads), (_END, self._ends)):
            if len(rows) >= least:
                self._database.execute("BEGIN")  # otherwise each row is a separate transaction
                self._database.executemany(statement, rows)
                self._database.execute("COMMIT")
                rows.clear()
