"""The scores of a run, kept in a file for the statistics that need all of them."""

from __future__ import annotations

import math
import sqlite3
import statistics
from collections.abc import Iterator, Sequence

from ..._toolkit.temporary import temporary_database

BATCH = 2000

TOLERANCE = 1e-9
"""A number that is less than this below a line counts as on it: three scores of .7 have a mean of .7, whatever the rounding."""


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


Clusters = tuple[int, int, int]
"""So many subjects share a session, so many of them pass, and there are so many sessions like this one."""


class Passes:
    """How many subjects there are and how many of them reach *line*; how these share sessions is kept in a file.

    Without a line nothing says which subjects pass.
    """

    def __init__(self, line: float | None = 0.5) -> None:
        self.has_line = line is not None
        self.line = math.inf if line is None else line - TOLERANCE
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
                self._database = temporary_database(self, "CREATE TABLE passes(session, size, passed)")
            self._database.execute("BEGIN")
            self._database.executemany("INSERT INTO passes VALUES (?, ?, ?)", self._waiting)
            self._database.execute("COMMIT")
            self._waiting.clear()
