"""Sums over the sessions of audited subjects, kept in a temporary file."""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter

BATCH = 2000

_NOTHING_HELD = (0.0, 0.0, 0.0)


class AuditSessions:
    """Subjects by session, for sums over each session."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str, str, int, float, int, float, int, float, float]] = []
        self._database: sqlite3.Connection | None = None

    def add(self, session: str, state: str, score: float, truth: float | None, group: str = "") -> None:
        """Count a subject that passed, was held back, or was audited in *group*."""
        passed, audited = state == "passed", state == "audited" and truth is not None
        value = truth or 0.0
        sums = (int(passed), value if passed else 0.0, int(not passed), 0.0 if passed else score)
        self._waiting.append(
            (session, group, *sums, int(audited), value if audited else 0.0, score if audited else 0.0)
        )
        if len(self._waiting) >= BATCH:
            self._flush()

    def has_repeats(self) -> bool:
        """Return whether any session has more than one subject."""
        query = "SELECT 1 FROM subjects GROUP BY session HAVING count(*) > 1 LIMIT 1"
        if self._database is None and not self._waiting:
            return False
        return self._flush().execute(query).fetchone() is not None

    def squares(self, mean: float, parts: Mapping[str, tuple[float, float, float]]) -> tuple[int, int, float]:
        """Return the number of sessions, the number of sessions with an audit, and a sum of squares.

        Each session adds the square of its total of ``pseudo-score - mean``.

        :param parts: by group, the slope, the shift, and the weight of an audit.
        """
        columns = ("passed", "truth", "held", "score", "audited", "audited_truth", "audited_score")
        summed = ", ".join(f"sum({name})" for name in columns)
        query = f"SELECT session, part, {summed} FROM subjects GROUP BY session, part ORDER BY session"  # noqa: S608  # its own columns
        sessions, with_audit, squares = 0, 0, 0.0
        for _, rows in groupby(self._flush().execute(query), key=itemgetter(0)):
            deviation, audits = 0.0, 0
            for _, group, passed, truth, held_back, score, audited, audited_truth, audited_score in rows:
                slope, shift, weight = parts.get(group, _NOTHING_HELD)
                pseudo = truth + slope * score + held_back * shift
                pseudo += weight * (audited_truth - slope * audited_score - audited * shift)
                deviation += pseudo - (passed + held_back) * mean
                audits += audited
            sessions, with_audit, squares = sessions + 1, with_audit + (audits > 0), squares + deviation**2
        return sessions, with_audit, squares

    def _flush(self) -> sqlite3.Connection:
        if self._database is None:
            self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
            weakref.finalize(self, self._database.close)
            self._database.execute(
                "CREATE TABLE subjects(session TEXT, part TEXT, passed, truth, held, score, audited, audited_truth, audited_score)"
            )
        self._database.execute("BEGIN")
        self._database.executemany("INSERT INTO subjects VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", self._waiting)
        self._database.execute("COMMIT")
        self._waiting.clear()
        return self._database
