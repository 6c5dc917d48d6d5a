"""The scores of a run, kept in a file for the statistics that need all of them."""

from __future__ import annotations

import sqlite3
import statistics
from collections.abc import Iterator, Sequence

from ...toolkit.temporary import temporary_database

BATCH = 2000


class ScoreFile:
    """Scores with their sessions, for the statistics that need all of them at once.

    *spared* counts the subjects that have no score because the proxies kept them from it.
    """

    def __init__(self) -> None:
        self._database = temporary_database(self, "CREATE TABLE scores(session, score REAL)")
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


Clusters = tuple[int, int, int, int]
"""So many subjects share a session, so many of them pass, so many are open, and there are so many sessions like this one."""


class Passes:
    """The numbers of subjects that pass, that do not, and that are open; how they share sessions is kept in a file."""

    def __init__(self) -> None:
        self._lone, self._lone_passed, self._lone_open = 0, 0, 0
        self._gone, self._gone_passed, self._gone_open = 0, 0, 0
        self._session: str | None = None
        self._here, self._here_passed, self._here_open = 0, 0, 0
        self._waiting: list[tuple[str | None, int, int, int]] = []
        self._database: sqlite3.Connection | None = None

    def add(self, sessions: Sequence[str | None], passed: Sequence[bool | None]) -> None:
        """Count subjects, each with its session, by whether they *passed*; None is an open subject."""
        if sessions.count(None) == len(sessions):
            self._lone += len(passed)
            self._lone_passed += passed.count(True)
            self._lone_open += passed.count(None)
            return
        for session, answer in zip(sessions, passed, strict=True):
            self._add(session, answer)

    def _add(self, session: str | None, answer: bool | None) -> None:
        if session is None:
            self._lone += 1
            self._lone_passed += answer is True
            self._lone_open += answer is None
            return
        if session != self._session:
            self._leave()
            self._session = session
        self._here += 1
        self._here_passed += answer is True
        self._here_open += answer is None

    @property
    def count(self) -> int:
        """The number of all subjects, open ones included."""
        return self._lone + self._gone + self._here

    @property
    def passed(self) -> int:
        """The number of subjects that pass."""
        return self._lone_passed + self._gone_passed + self._here_passed

    @property
    def open(self) -> int:
        """The number of open subjects."""
        return self._lone_open + self._gone_open + self._here_open

    def clusters(self) -> Iterator[Clusters]:
        """Yield the sessions, equal ones together; a subject without a session is one of its own."""
        yield 1, 1, 0, self._lone_passed
        yield 1, 0, 1, self._lone_open
        yield 1, 0, 0, self._lone - self._lone_passed - self._lone_open
        self._leave()
        self._flush()
        if self._database is not None:
            yield from self._database.execute(
                "SELECT size, passed, open, count(*) FROM "
                "(SELECT sum(size) AS size, sum(passed) AS passed, sum(open) AS open FROM passes GROUP BY session) "
                "GROUP BY size, passed, open"
            )

    def _leave(self) -> None:
        """Store the counts of the current session; the session may come again."""
        if self._here:
            self._waiting.append((self._session, self._here, self._here_passed, self._here_open))
            self._gone += self._here
            self._gone_passed += self._here_passed
            self._gone_open += self._here_open
            self._session, self._here, self._here_passed, self._here_open = None, 0, 0, 0
        if len(self._waiting) >= BATCH:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            if self._database is None:
                self._database = temporary_database(self, "CREATE TABLE passes(session, size, passed, open)")
            self._database.execute("BEGIN")
            self._database.executemany("INSERT INTO passes VALUES (?, ?, ?, ?)", self._waiting)
            self._database.execute("COMMIT")
            self._waiting.clear()
