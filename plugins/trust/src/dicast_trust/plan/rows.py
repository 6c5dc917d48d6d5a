"""Rows of an earlier run or a pilot, kept in a temporary file, because a run may have any number of rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from dicast import Ledger, Query

from ..statistics.moments import Moments

UNITS = ("usd", "msat")
_READ = ("eval.completed", "eval.failed", "spend.settled", "record.completed", "record.failed")
_COLUMNS = "kind TEXT, id TEXT, session TEXT, usd REAL, msat REAL, unknown INTEGER, calls INTEGER, seconds REAL, score REAL, ended INTEGER"
_ADD = (
    "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (kind, id) DO UPDATE SET usd = usd + excluded.usd, "
    "msat = msat + excluded.msat, unknown = unknown + excluded.unknown, calls = calls + excluded.calls, "
    "seconds = seconds + excluded.seconds, score = coalesce(excluded.score, score), ended = max(ended, excluded.ended)"
)
_SQUARES = (
    "SELECT count(*), total(square) FROM (SELECT sum(score - :mean) * sum(score - :mean) AS square FROM rows "
    "WHERE score IS NOT NULL GROUP BY coalesce(session, kind || char(0) || id), session IS NULL)"
)


class PlanRows:
    """Rows of one run: the cost of each, its duration, and its score of *label*."""

    def __init__(self, label: str | None) -> None:
        self._label = label
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute(f"CREATE TABLE rows({_COLUMNS}, PRIMARY KEY (kind, id))")
        self.settled = {unit: Decimal() for unit in UNITS}

    def close(self) -> None:
        """Delete the temporary file."""
        self._database.close()

    def read(self, ledger: Ledger, run_id: str) -> None:
        """Read the rows of the run *run_id*."""
        self._database.execute("BEGIN")
        events = (entry.event for entry in ledger.read(Query(run_id=run_id, types=_READ)))
        self._database.executemany(_ADD, (row for event in events if (row := self._row(event)) is not None))
        self._database.execute("COMMIT")

    def _row(self, event: Any) -> tuple[Any, ...] | None:
        if event.subject_id is None:
            return None
        payload: Mapping[str, Any] = event.payload
        subject = event.subject_kind, event.subject_id, event.session_id
        if event.type == "spend.settled":
            amount, unit = payload["amount"], payload["unit"]
            self.settled[unit] += Decimal(amount or 0)
            amounts = [float(amount or 0) if unit == name else 0.0 for name in UNITS]
            return *subject, *amounts, amount is None, payload.get("calls", 1), 0.0, None, 0
        score = payload.get("score") if payload.get("judge") == self._label else None
        return *subject, 0.0, 0.0, 0, 0, payload.get("judge_latency_ms", 0) / 1000, score, 1

    def cost(self, kind: str, subject_id: str, unit: str) -> float | None:
        """Return the cost of this subject's row, or None if it was not judged."""
        query = f"SELECT {unit} FROM rows WHERE ended AND kind = ? AND id = ?"  # noqa: S608  # one of UNITS
        row = self._database.execute(query, (kind, subject_id)).fetchone()
        return None if row is None else float(row[0])

    def moments(self, column: str) -> Moments:
        """Return the mean and the sum of squares of a *column* over the rows: usd, msat, calls, seconds or score."""
        query = f"SELECT {column} FROM rows WHERE ended AND {column} IS NOT NULL"  # noqa: S608  # a literal of the caller
        moments = Moments()
        for (value,) in self._database.execute(query):
            moments.add(value)
        return moments

    def has_unknown(self) -> bool:
        """Return whether the cost of any call is unknown."""
        return bool(self._database.execute("SELECT 1 FROM rows WHERE unknown LIMIT 1").fetchone())

    def design_effect(self) -> float:
        """Return the design effect of sessions on the mean score, at least 1: its clustered variance over the variance of independent scores."""
        scores = self.moments("score")
        sessions, squares = self._database.execute(_SQUARES, {"mean": scores.x}).fetchone()
        if sessions == scores.count or sessions < 2 or scores.xx <= 0:
            return 1.0
        plain = scores.xx / (scores.count - 1) * scores.count
        return max(1.0, float(sessions / (sessions - 1) * squares / plain))

    def scores(self) -> Iterator[tuple[str, str, float]]:
        """Yield the kind, id and score of each subject with a score."""
        yield from self._database.execute("SELECT kind, id, score FROM rows WHERE score IS NOT NULL ORDER BY kind, id")
