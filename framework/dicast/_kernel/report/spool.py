"""Scores of a run in a temporary file, for statistics over all of them."""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, repeat, starmap

from ...toolkit.temporary import temporary_database
from .exact_sum import ExactSum

BATCH = 2000
_ROUNDING = 1e-12

_SCORES = "(session, score REAL, weight REAL, times INTEGER)"


class ScoreFile:
    """Scores with their sessions, for statistics that need all scores at once. Equal rows are stored together, with the number of *times*.

    *spared* counts the subjects without a score because the proxies held them back. *weight* and *spared_weight* are the sums of the
    weights of both.
    """

    def __init__(self) -> None:
        self._database = temporary_database(self, f"CREATE TABLE scores{_SCORES}")
        self._waiting: list[tuple[str | None, float | None, float]] = []
        self.count = self.spared = 0
        self.weight = self.spared_weight = 0.0

    def add(self, scores: Sequence[tuple[str | None, float]], weights: Sequence[float] | None = None) -> None:
        """Store *scores*, each with its session. Without *weights* each has the weight 1."""
        self.count += len(scores)
        self.weight += len(scores) if weights is None else math.fsum(weights)
        self._store(scores, weights)

    def spare(self, sessions: Sequence[str | None], weights: Sequence[float] | None = None) -> None:
        """Count subjects of these *sessions* that the proxies held back from a score."""
        self.spared += len(sessions)
        self.spared_weight += len(sessions) if weights is None else math.fsum(weights)
        self._store([(session, None) for session in sessions], weights)

    def subtract(self, other: ScoreFile) -> None:
        """Remove the scores that *other* has too."""
        self._flush()
        other._flush()
        self._insert(other._database.execute("SELECT session, score, weight, -times FROM scores"))
        for statement in (
            f"CREATE TABLE rest{_SCORES}",
            "INSERT INTO rest SELECT session, score, weight, sum(times) FROM scores GROUP BY 1, 2, 3 HAVING sum(times) > 0",
            "DROP TABLE scores",
            "ALTER TABLE rest RENAME TO scores",
        ):
            self._database.execute(statement)
        self.count, self.spared = self.count - other.count, self.spared - other.spared
        self.weight, self.spared_weight = self.weight - other.weight, self.spared_weight - other.spared_weight

    def ends(self) -> tuple[float, float]:
        """Return the lowest and the highest score; infinities without scores."""
        self._flush()
        lowest, highest = self._database.execute("SELECT min(score), max(score) FROM scores").fetchone()
        return (math.inf, -math.inf) if lowest is None else (lowest, highest)

    @property
    def is_weighted(self) -> bool:
        """True if the weights of the scores differ from 1."""
        return self.weight != self.count or self.spared_weight != self.spared

    def weighted_mean(self) -> float:
        """Return the sum of weighted scores over the sum of weights (Hajek's ratio)."""
        self._flush()
        query = "SELECT score * weight, times FROM scores WHERE score IS NOT NULL"
        total = math.fsum(_each(self._database.execute(query)))
        return total / self.weight

    def weighted_median(self) -> float:
        """Return the lowest score at which half of the weight is reached."""
        self._flush()
        ascending = "SELECT score, weight * times FROM scores WHERE score IS NOT NULL ORDER BY score"
        reached = 0.0
        for score, weight in self._database.execute(ascending):
            reached += weight
            if 2 * reached >= self.weight * (1 - _ROUNDING):
                return float(score)
        raise ValueError("there are no scores")

    def _store(self, rows: Sequence[tuple[str | None, float | None]], weights: Sequence[float] | None) -> None:
        row_weights = repeat(1.0) if weights is None else weights
        self._waiting += [(session, score, weight) for (session, score), weight in zip(rows, row_weights, strict=False)]
        if len(self._waiting) >= BATCH:
            self._flush()

    def ascending(self, start: int, stop: int) -> list[float]:
        """Return the scores of ranks *start* to *stop* (exclusive, from 0), lowest first."""
        self._flush()
        return list(islice(_each(self._ascending()), start, stop))

    def trimmed(self, cut: int) -> float:
        """Return the mean without the *cut* lowest and the *cut* highest scores; exact, rounded once. Some scores must be left."""
        self._flush()
        total, rank = ExactSum(), 0
        for score, times in self._ascending():
            start, rank = rank, rank + times
            total.add_times(score, max(0, min(rank, self.count - cut) - max(start, cut)))
        mean = total.over(self.count - 2 * cut)
        assert mean is not None  # some scores are left
        return mean

    def _ascending(self) -> Iterator[tuple[float, int]]:
        """Yield the different scores with their numbers, lowest first."""
        grouped = "SELECT score, sum(times) FROM scores WHERE score IS NOT NULL GROUP BY score ORDER BY score"
        return self._database.execute(grouped)

    def cluster_residuals(self, mean: float, spared: float | None = None) -> tuple[int, float]:
        """Return the number of clusters, and the sum over the clusters of the squared sum of their weighted residuals from *mean*.

        The scores of one session are a cluster; a score without a session is a cluster by itself. Spared subjects are left out, or
        counted with the score *spared*.
        """
        self._flush()
        residuals = self._database.execute(
            "WITH known AS (SELECT session, coalesce(score, :spared) AS score, weight, times FROM scores) "
            "SELECT sum(times * weight * (score - :mean)), 1 FROM known WHERE session IS NOT NULL AND score IS NOT NULL GROUP BY session "
            "UNION ALL SELECT weight * (score - :mean), sum(times) FROM known WHERE session IS NULL AND score IS NOT NULL GROUP BY score, weight",
            {"mean": mean, "spared": spared},
        )
        clusters, squares = 0, 0.0
        for residual, times in residuals:
            clusters += times
            squares += times * residual * residual
        return clusters, squares

    def _flush(self) -> None:
        self._insert((*row, times) for row, times in Counter(self._waiting).items())
        self._waiting.clear()

    def _insert(self, rows: Iterable[tuple[str | None, float | None, float, int]]) -> None:
        self._database.execute("BEGIN")  # one transaction for all rows
        self._database.executemany("INSERT INTO scores VALUES (?, ?, ?, ?)", rows)
        self._database.execute("COMMIT")


def _each(groups: Iterable[tuple[float, int]]) -> Iterator[float]:
    """Yield the number of each group as often as it counts."""
    return chain.from_iterable(starmap(repeat, groups))


class WeightedPasses:
    """Weights of subjects that pass, that do not pass, and that are open, by session."""

    def __init__(self) -> None:
        self._database = temporary_database(
            self, "CREATE TABLE passes(session, weight REAL, passed REAL, open REAL, subjects INTEGER)"
        )

    @classmethod
    def of(
        cls, lone: int, lone_passed: int, lone_open: int, sessions: Iterable[tuple[str, int, int, int]]
    ) -> WeightedPasses:
        """Return the weights of subjects that were counted once each: subjects without a session, and *sessions*."""
        weighted = cls()
        kinds = ((1, 0, lone_passed), (0, 1, lone_open), (0, 0, lone - lone_passed - lone_open))
        rows = [(None, 1, passed, is_open, 1) for passed, is_open, times in kinds for _ in range(times)]
        rows_of_sessions = [(session, size, passed, open_, size) for session, size, passed, open_ in sessions]
        weighted._store([*rows, *rows_of_sessions])
        return weighted

    def add(
        self, sessions: Sequence[str | None], passed: Sequence[bool | None], weights: Sequence[float] | None
    ) -> None:
        """Count subjects with their weights."""
        each_weight = [1.0] * len(sessions) if weights is None else weights
        self._store(
            [
                (session, weight, weight * (answer is True), weight * (answer is None), 1)
                for session, answer, weight in zip(sessions, passed, each_weight, strict=True)
            ]
        )

    def clusters(self) -> Iterator[tuple[float, float, float, int]]:
        """Yield the weight, the passed and the open weight, and the number of subjects of each session; a lone subject is a session."""
        yield from self._database.execute(
            "SELECT sum(weight), sum(passed), sum(open), sum(subjects) FROM passes WHERE session IS NOT NULL GROUP BY session "
            "UNION ALL SELECT weight, passed, open, subjects FROM passes WHERE session IS NULL"
        )

    def _store(self, rows: Sequence[tuple[str | None, float, float, float, int]]) -> None:
        self._database.execute("BEGIN")
        self._database.executemany("INSERT INTO passes VALUES (?, ?, ?, ?, ?)", rows)
        self._database.execute("COMMIT")


Clusters = tuple[int, int, int, int]
"""Numbers of all, passing and open subjects of a session, and the number of such sessions."""


class Passes:
    """Numbers of subjects that pass, that do not pass, and that are open. Their sessions are kept in a temporary file."""

    def __init__(self) -> None:
        self._lone, self._lone_passed, self._lone_open = 0, 0, 0
        self._stored, self._stored_passed, self._stored_open = 0, 0, 0
        self._session: str | None = None
        self._current, self._current_passed, self._current_open = 0, 0, 0
        self._waiting: list[tuple[str | None, int, int, int]] = []
        self._database: sqlite3.Connection | None = None
        self.weighted: WeightedPasses | None = None

    def add(
        self, sessions: Sequence[str | None], passed: Sequence[bool | None], weights: Sequence[float] | None = None
    ) -> None:
        """Count subjects, each with its session, by whether they *passed*; None is an open subject. Without *weights* each counts once."""
        if weights is not None and self.weighted is None:
            self.weighted = WeightedPasses.of(self._lone, self._lone_passed, self._lone_open, self._by_session())
        if self.weighted is not None:
            self.weighted.add(sessions, passed, weights)
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
            self._end_session()
            self._session = session
        self._current += 1
        self._current_passed += answer is True
        self._current_open += answer is None

    def subtract(self, other: Passes) -> None:
        """Remove the subjects that *other* counts too; no subject has a weight."""
        self._lone -= other._lone
        self._lone_passed -= other._lone_passed
        self._lone_open -= other._lone_open
        self._end_session()
        for session, size, passed, open_ in other._by_session():
            self._session, self._current, self._current_passed, self._current_open = session, -size, -passed, -open_
            self._end_session()

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
        """Yield the counts of the sessions. Sessions with equal counts are one item; a subject without a session is a session by itself."""
        yield 1, 1, 0, self._lone_passed
        yield 1, 0, 1, self._lone_open
        yield 1, 0, 0, self._lone - self._lone_passed - self._lone_open
        self._end_session()
        self._flush()
        if self._database is not None:
            yield from self._database.execute(
                "SELECT size, passed, open, count(*) FROM "
                "(SELECT sum(size) AS size, sum(passed) AS passed, sum(open) AS open FROM passes GROUP BY session HAVING sum(size)) "
                "GROUP BY size, passed, open"
            )

    def _by_session(self) -> Iterator[tuple[str, int, int, int]]:
        """Yield the size, the passed and the open subjects of each session so far."""
        self._end_session()
        self._flush()
        if self._database is not None:
            yield from self._database.execute(
                "SELECT session, sum(size), sum(passed), sum(open) FROM passes GROUP BY session HAVING sum(size)"
            )

    def _end_session(self) -> None:
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
