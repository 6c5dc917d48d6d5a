"""Scores of a run in a temporary file, for statistics over all of them."""

from __future__ import annotations

import sqlite3
import statistics
from collections.abc import Iterator, Sequence

from ...toolkit.temporary import temporary_database

BATCH = 2000


class ScoreFile:
    """Scores with their sessions, for statistics that need all scores at once.

    *spared* counts the subjects without a score because the proxies held them back.
    """

    def __init__(self) -> None:
        self._database = temporary_database(self, "CREATE TABLE scores(session, score REAL)")
        self._waiting: list[tuple[str | None, float | None]] = []
        self.count = self.spared = 0

    def add(self, scores: Sequence[tuple[str | None, float]]) -> None:
        """Store *scores*, each with its session."""
        self.count += len(scores)
        self._store(scores)

    def spare(self, sessions: Sequence[str | None]) -> None:
        """Count subjects of these *sessions* that the proxies held back from a score."""
        self.spared += len(sessions)
        self._store([(session, None) for session in sessions])

    def _store(self, rows: Sequence[tuple[str | None, float | None]]) -> None:
        self._waiting += rows
        if len(self._waiting) >= BATCH:
            self._flush()

    def ascending(self, start: int, stop: int) -> list[float]:
        """Return the scores of ranks *start* to *stop* (exclusive, from 0), lowest first."""
        self._flush()
        query = "SELECT score FROM scores WHERE score IS NOT NULL ORDER BY score LIMIT ? OFFSET ?"
        return [score for (score,) in self._database.execute(query, (max(0, stop - start), start))]

    def trimmed(self, cut: int) -> float:
        """Return the mean without the *cut* lowest and the *cut* highest scores; exact, rounded once (:func:`statistics.mean`)."""
        self._flush()
        every = "SELECT score FROM scores WHERE score IS NOT NULL"
        ranked = "SELECT score FROM scores WHERE score IS NOT NULL ORDER BY score LIMIT ? OFFSET ?"
        query = ranked if cut else every  # sorting takes longer than summing
        rows = self._database.execute(query, (self.count - 2 * cut, cut) if cut else ())
        return float(statistics.mean(score for (score,) in rows))

    def cluster_residuals(self, mean: float, spared: float | None = None) -> tuple[int, float]:
        """Return the number of clusters, and the sum of squares of the clusters' summed residuals.

        The scores of one session are a cluster; a score without a session is a cluster by itself. Spared subjects are left out, or
        counted with the score *spared*.
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
        self._database.execute("BEGIN")  # one transaction for all rows
        self._database.executemany("INSERT INTO scores VALUES (?, ?)", self._waiting)
        self._database.execute("COMMIT")
        self._waiting.clear()


Clusters = tuple[int, int, int, int]
"""Number of subjects in a session, of those that pass, of those that are open, and number of such sessions."""


class Passes:
    """Numbers of subjects that pass, that do not pass, and that are open. Their sessions are kept in a temporary file."""

    def __init__(self) -> None:
        self._lone, self._lone_passed, self._lone_open = 0, 0, 0
        self._stored, self._stored_passed, self._stored_open = 0, 0, 0
        self._session: str | None = None
        self._current, self._current_passed, self._current_open = 0, 0, 0
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
        self._current += 1
        self._current_passed += answer is True
        self._current_open += answer is None

    @property
    def count(self) -> int:
        """The number of all subjects, including open subjects."""
        return self._lone + self._stored + self._current

    @property
    def passed(self) -> int:
        """The number of subjects that pass."""
        return self._lone_passed + self._stored_passed + self._current_passed

    @property
    def open(self) -> int:
        """The number of open subjects."""
        return self._lone_open + self._stored_open + self._current_open

    def clusters(self) -> Iterator[Clusters]:
        """Yield the sessions, equal sessions grouped; a subject without a session is a session by itself."""
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
        """Store the counts of the current session. The session may appear again."""
        if self._current:
            self._waiting.append((self._session, self._current, self._current_passed, self._current_open))
            self._stored += self._current
            self._stored_passed += self._current_passed
            self._stored_open += self._current_open
            self._session, self._current, self._current_passed, self._current_open = None, 0, 0, 0
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
