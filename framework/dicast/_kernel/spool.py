"""What grows with the number of subjects and therefore may not live in memory: temporary SQLite files.

The file has no name and is gone when its owner is.
"""

from __future__ import annotations

import sqlite3
import statistics
import weakref
from collections.abc import Iterator, Sequence

import attrs

BATCH = 2000


def _temporary(owner: object, schema: str) -> sqlite3.Connection:
    """A database with *schema* that is closed when *owner* is no longer used, in whichever thread that happens."""
    connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    weakref.finalize(owner, connection.close)
    connection.execute("PRAGMA journal_mode=OFF")
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute(schema)
    return connection


TOLERANCE = 1e-9
"""A number that is less than this below a line counts as on it: three scores of .7 have a mean of .7, whatever the rounding."""


class ScoreSpool:
    """Scores with their sessions, for the statistics that need all of them at once.

    *spared* counts the subjects that have no score because the proxies kept them from it.
    """

    def __init__(self) -> None:
        self._database = _temporary(self, "CREATE TABLE scores(session, score REAL)")
        self._waiting: list[tuple[str | None, float | None]] = []
        self.count = self.spared = 0

    def add(self, scores: Sequence[tuple[str | None, float]]) -> None:
        """Keep *scores*, each with its session."""
        self.count += len(scores)
        self._keep(scores)

    def spare(self, sessions: Sequence[str | None]) -> None:
        """Count subjects of these *sessions* that the proxies kept from being scored."""
        self.spared += len(sessions)
        self._keep([(session, None) for session in sessions])

    def _keep(self, rows: Sequence[tuple[str | None, float | None]]) -> None:
        self._waiting += rows
        if len(self._waiting) >= BATCH:
            self._flush()

    def ascending(self, start: int, stop: int) -> list[float]:
        """The scores of ranks *start* to *stop* (exclusive, from 0), lowest first."""
        self._flush()
        query = "SELECT score FROM scores WHERE score IS NOT NULL ORDER BY score LIMIT ? OFFSET ?"
        return [score for (score,) in self._database.execute(query, (max(0, stop - start), start))]

    def trimmed(self, cut: int) -> float:
        """The mean without the *cut* lowest and the *cut* highest; exact, and rounded once (:func:`statistics.mean`)."""
        self._flush()
        every = "SELECT score FROM scores WHERE score IS NOT NULL"
        ranked = "SELECT score FROM scores WHERE score IS NOT NULL ORDER BY score LIMIT ? OFFSET ?"
        query = ranked if cut else every  # sorting takes longer than adding up
        rows = self._database.execute(query, (self.count - 2 * cut, cut) if cut else ())
        return float(statistics.mean(score for (score,) in rows))

    def cluster_residuals(self, mean: float, spared: float | None = None) -> tuple[int, float]:
        """How many clusters there are, and the sum of squares of each one's summed residuals.

        Scores of one session are a cluster; a score without a session is a cluster of its own. Subjects that were spared are left
        out, or count as if each had the score *spared*.
        """
        self._flush()
        sessions = self._database.execute(
            "WITH known(session, score) AS (SELECT session, coalesce(score, :spared) FROM scores) "
            "SELECT sum(score - :mean) FROM known WHERE session IS NOT NULL AND score IS NOT NULL GROUP BY session "
            "UNION ALL SELECT score - :mean FROM known WHERE session IS NULL AND score IS NOT NULL",
            {"mean": mean, "spared": spared},
        )
        clusters, squares = 0, 0.0
        for (residual,) in sessions:
            clusters += 1
            squares += residual * residual
        return clusters, squares

    def _flush(self) -> None:
        self._database.execute("BEGIN")  # else each row is a transaction of its own
        self._database.executemany("INSERT INTO scores VALUES (?, ?)", self._waiting)
        self._database.execute("COMMIT")
        self._waiting.clear()


Clusters = tuple[int, int, int]
"""So many subjects share a session, so many of them pass, and there are so many sessions like this one."""


class Passes:
    """How many subjects there are and how many of them reach *line*; how these share sessions is kept in a file."""

    def __init__(self, line: float = 0.5) -> None:
        self.line = line - TOLERANCE
        self._lone, self._lone_passed = 0, 0
        self._gone, self._gone_passed = 0, 0
        self._session: str | None = None
        self._here, self._here_passed = 0, 0
        self._waiting: list[tuple[str | None, int, int]] = []
        self._database: sqlite3.Connection | None = None

    def add(self, sessions: Sequence[str | None], values: Sequence[float | None]) -> None:
        """Count subjects, each with its session; one without a value does not pass."""
        line = self.line
        passed = [value is not None and value >= line for value in values]
        if sessions.count(None) == len(sessions):
            self._lone += len(passed)
            self._lone_passed += sum(passed)
            return
        for session, passes in zip(sessions, passed, strict=True):
            self._add(session, passed=passes)

    def _add(self, session: str | None, *, passed: bool) -> None:
        if session is None:
            self._lone += 1
            self._lone_passed += passed
            return
        if session != self._session:
            self._leave()
            self._session = session
        self._here += 1
        self._here_passed += passed

    @property
    def count(self) -> int:
        """How many subjects there are."""
        return self._lone + self._gone + self._here

    @property
    def passed(self) -> int:
        """How many of them pass."""
        return self._lone_passed + self._gone_passed + self._here_passed

    def clusters(self) -> Iterator[Clusters]:
        """The sessions, those that are alike together; a subject without one is alone."""
        yield 1, 1, self._lone_passed
        yield 1, 0, self._lone - self._lone_passed
        self._leave()
        self._flush()
        if self._database is not None:
            yield from self._database.execute(
                "SELECT size, passed, count(*) FROM "
                "(SELECT sum(size) AS size, sum(passed) AS passed FROM passes GROUP BY session) GROUP BY size, passed"
            )

    def _leave(self) -> None:
        """Keep what the session that came last has had until now; it may come again."""
        if self._here:
            self._waiting.append((self._session, self._here, self._here_passed))
            self._gone += self._here
            self._gone_passed += self._here_passed
            self._session, self._here, self._here_passed = None, 0, 0
        if len(self._waiting) >= BATCH:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            if self._database is None:
                self._database = _temporary(self, "CREATE TABLE passes(session, size, passed)")
            self._database.execute("BEGIN")
            self._database.executemany("INSERT INTO passes VALUES (?, ?, ?)", self._waiting)
            self._database.execute("COMMIT")
            self._waiting.clear()


@attrs.frozen
class UnitState:
    """One unit: its newest *eval_id*, its *state* (``open``, ``scored`` or ``failed``), where in the ledger its newest end
    stands, or else its start, and whether anything came after a failure, *late*.
    """

    eval_id: str
    state: str
    seq: int
    late: bool


ReplyKey = tuple[str, str, str, str, int]
"""What an answer was about: subject kind, subject id, the verdict's label, the metric's or judge's label, rollout."""


class IdSpool:
    """Which ids have been seen."""

    def __init__(self) -> None:
        self._database = _temporary(self, "CREATE TABLE ids(kind, id, PRIMARY KEY (kind, id)) WITHOUT ROWID")

    def add(self, kind: str, subject_id: str) -> bool:
        """Note an id; False when it was noted before."""
        return self._database.execute("INSERT OR IGNORE INTO ids VALUES (?, ?)", (kind, subject_id)).rowcount == 1


class UnitSpool:
    """What an earlier process of this run left in the ledger, by unit: (subject kind, subject id, label)."""

    def __init__(self) -> None:
        self._database = _temporary(
            self,
            "CREATE TABLE units(kind, id, label, eval_id, state, seq, late, PRIMARY KEY (kind, id, label)) WITHOUT ROWID",
        )
        self._database.execute(
            "CREATE TABLE replies(kind, id, label, metric, rollout, reply, PRIMARY KEY (kind, id, label, metric, rollout))"
        )
        self._database.execute("CREATE TABLE history(kind, id, seq, PRIMARY KEY (kind, id, seq)) WITHOUT ROWID")
        self._database.execute("CREATE TABLE reads(kind, id, seq, PRIMARY KEY (kind, id)) WITHOUT ROWID")

    def note(self, unit: tuple[str, str, str], eval_id: str, state: str, seq: int) -> None:
        """The newest thing known about *unit*: *state* is ``open``, ``scored`` or ``failed``."""
        self._database.execute(
            "INSERT INTO units VALUES (?, ?, ?, ?, ?, ?, 0) ON CONFLICT DO UPDATE SET "
            "late = late OR state = 'failed', eval_id = excluded.eval_id, state = excluded.state, "
            "seq = CASE excluded.state WHEN 'open' THEN seq ELSE excluded.seq END",
            (*unit, eval_id, state, seq),
        )
        self._database.execute("INSERT OR IGNORE INTO history VALUES (?, ?, ?)", (unit[0], unit[1], seq))

    def history(self, kind: str, subject_id: str) -> list[int]:
        """Where the ``eval.*`` events of one subject stand, oldest first."""
        query = "SELECT seq FROM history WHERE kind = ? AND id = ? ORDER BY seq"
        return [seq for (seq,) in self._database.execute(query, (kind, subject_id))]

    def states(self, kind: str, subject_id: str) -> dict[str, UnitState]:
        """What is known of every unit of one subject, by label."""
        query = "SELECT label, eval_id, state, seq, late FROM units WHERE kind = ? AND id = ?"
        rows = self._database.execute(query, (kind, subject_id))
        return {row[0]: UnitState(row[1], row[2], row[3], bool(row[4])) for row in rows}

    def moved(self, *, retry: bool) -> Iterator[tuple[str, str]]:
        """Kind and id of the subjects of which a failure was retried, or is to be on a *retry*; in the order of reading.

        They are those of the first moment: SQLite has sorted them by then, so they may be forgotten in between.
        """
        query = (
            "SELECT DISTINCT kind, id FROM units JOIN reads USING (kind, id) "
            "WHERE late OR (? AND state = 'failed') ORDER BY reads.seq"
        )
        return self._database.execute(query, (retry,))

    def note_read(self, kind: str, subject_id: str, seq: int) -> None:
        """A subject's ``subject.read`` stands at *seq*."""
        self._database.execute("INSERT OR IGNORE INTO reads VALUES (?, ?, ?)", (kind, subject_id, seq))

    def read_at(self, kind: str, subject_id: str) -> int | None:
        """Where a subject's ``subject.read`` stands, or None."""
        row = self._database.execute("SELECT seq FROM reads WHERE kind = ? AND id = ?", (kind, subject_id)).fetchone()
        return None if row is None else int(row[0])

    def forget(self, kind: str, subject_id: str) -> None:
        """Let go of a subject's units and of what was paid for them: they have ended, and may begin again."""
        self._database.execute("DELETE FROM units WHERE kind = ? AND id = ?", (kind, subject_id))
        self._database.execute("DELETE FROM replies WHERE kind = ? AND id = ?", (kind, subject_id))

    def forget_empty(self, kind: str, subject_id: str) -> None:
        """Let go of the replies for a subject's record that say nothing."""
        self._database.execute(
            "DELETE FROM replies WHERE kind = ? AND id = ? AND label = '' "
            "AND trim(json_extract(CAST(reply AS TEXT), '$.text'), char(9, 10, 13, 32)) = ''",
            (kind, subject_id),
        )

    def note_reply(self, key: ReplyKey, reply: bytes) -> None:
        """A paid answer under *key*."""
        self._database.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?, ?)", (*key, reply))

    def reply(self, key: ReplyKey) -> bytes | None:
        """The paid answer under *key*, or None."""
        query = "SELECT reply FROM replies WHERE kind = ? AND id = ? AND label = ? AND metric = ? AND rollout = ?"
        row = self._database.execute(query, key).fetchone()
        return None if row is None else bytes(row[0])
