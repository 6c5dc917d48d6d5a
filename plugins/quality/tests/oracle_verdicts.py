"""Verdicts of a window of time, joined with the model whose work they judge, and their figures by group."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Literal, get_args

import attrs

from dicast import Cost, Event, mean

from .reliability import percentile

Grouping = Literal["model", "judge_kind", "rubric_id", "none"]
GROUPINGS: tuple[str, ...] = get_args(Grouping)

Key = tuple[str | None, str | None]
"""What a group is named by, and for a rubric its version."""

DOWN = "explicit_thumbs_down"
"""The flag by which a verdict says that a user was not content."""

DECIDED = 2**52
"""More than there are events: a decision of the router counts before any call."""


@attrs.frozen
class Group:
    """The figures of some verdicts. *counted* are those that are sure enough to enter *scores*, which ascend.

    *cost* and *msat* add up the known amounts, *unpriced* counts the verdicts whose cost is not known.
    """

    key: Key
    count: int
    scores: array[float]
    confidence: float | None
    cost: Cost
    msat: Cost
    unpriced: int
    thumbs_down: int
    escalated: int
    exhausted: int

    @property
    def mean(self) -> float | None:
        """The mean score of the counted verdicts."""
        return mean(self.scores) if self.scores else None

    def percentile(self, share: float) -> float | None:
        """The score below which *share* of the counted verdicts lie."""
        return percentile(self.scores, share) if self.scores else None


class Verdicts:
    """Verdicts on subjects of one *kind*, in a file without a name that is gone with the process."""

    def __init__(self, kind: str, by: Grouping) -> None:
        self._kind, self._by = kind, by
        self.joins = by == "model" and kind == "turn"
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.executescript("""
            PRAGMA journal_mode = OFF;
            CREATE TABLE verdicts (id, run, judge, name, version, score REAL, confidence REAL, cost, msat, down, escalated, exhausted);
            CREATE TABLE told (turn, run, model, place INTEGER);
            CREATE TABLE thumbs (id PRIMARY KEY, down, time) WITHOUT ROWID;
        """)

    def close(self) -> None:
        """Forget them."""
        self._database.close()

    def add(self, events: Iterable[Event]) -> None:
        """Add ``eval.completed`` events, the oldest first."""
        with self._writing():
            self._database.executemany(
                "INSERT INTO verdicts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", map(self._row, events)
            )

    def keep_latest(self) -> None:
        """Drop all but the newest verdict of each judge on each subject."""
        newest = "SELECT max(rowid) FROM verdicts GROUP BY id, judge"
        self._database.execute(f"DELETE FROM verdicts WHERE rowid NOT IN ({newest})")  # noqa: S608  # no value in it

    def tell(self, events: Iterable[Event]) -> None:
        """Take what traces say of the subjects: the models that worked on them, and the thumbs they were given."""
        with self._writing():
            for place, event in enumerate(events):
                if event.type == "feedback.explicit":
                    self._thumb(event)
                elif self.joins and (model := event.payload.get(_MODEL[event.type])) is not None:
                    rank = place + (DECIDED if event.type == "route.decided" else 0)
                    row = event.turn_id, event.run_id, str(model), rank
                    self._database.execute("INSERT INTO told VALUES (?, ?, ?, ?)", row)

    def groups(self, min_confidence: float) -> Iterator[Group]:
        """The figures of every group; *min_confidence* is what a verdict needs to enter the scores."""
        if self.joins:
            self._join()
        rows = self._database.execute(
            "SELECT name, version, score, confidence, cost, msat, escalated, exhausted "
            "FROM verdicts ORDER BY name, version, score"
        )
        for key, members in groupby(rows, key=lambda row: (row[0], row[1])):
            yield _group(key, members, min_confidence, self._down(key))

    def _down(self, key: Key) -> int:
        """How many subjects of a group were given a thumb down last."""
        (count,) = self._database.execute(
            "SELECT count(DISTINCT id) FROM verdicts LEFT JOIN thumbs USING (id) "
            "WHERE name IS ? AND version IS ? AND coalesce(thumbs.down, verdicts.down)",
            key,
        ).fetchone()
        return int(count)

    def _row(self, event: Event) -> tuple[object, ...]:
        payload: Mapping[str, Any] = event.payload
        signals = payload.get("signals") or {}
        flags = [signals.get(name) for name in ("flags_negative", "heuristic_flags_negative")]
        return (
            payload["subject_id"],
            event.run_id,
            payload["judge"],
            *self._key(payload),
            payload["score"],
            payload["confidence"],
            payload["judge_cost_usd"],
            payload.get("judge_cost_msat", "0"),
            any(isinstance(found, list | tuple) and DOWN in found for found in flags),
            signals.get("escalated") is True,
            signals.get("budget_exhausted") is True or signals.get("escalation_skipped") == "budget_exhausted",
        )

    def _key(self, payload: Mapping[str, Any]) -> Key:
        if self._by == "rubric_id":
            return payload["rubric_id"], payload["rubric_version"]
        if self._by == "model":
            return None if self.joins else payload["judge_model"], None
        return (payload["judge_kind"], None) if self._by == "judge_kind" else (None, None)

    def _thumb(self, event: Event) -> None:
        """The thumb that was given last decides, of several at one time the one told last; without a scope it is on a turn."""
        payload: Mapping[str, Any] = event.payload
        if (payload.get("scope") or "turn") != self._kind or payload.get("rating") not in ("thumbs_up", "thumbs_down"):
            return
        id = event.session_id if self._kind == "session" else payload.get("subject_turn_id") or event.turn_id
        if id is not None:
            self._database.execute(
                "INSERT INTO thumbs VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET down = excluded.down, time = excluded.time "
                "WHERE excluded.time >= time",
                (str(id), payload["rating"] == "thumbs_down", _instant(event.time)),
            )

    def _join(self) -> None:
        """Give each verdict the model of its turn, from its own run or else from the run that told of the turn last.

        Of several decisions in a turn the last counts; where there was none, the model of the turn's calls if it is only one.
        """
        self._database.executescript(
            """
            CREATE TABLE models AS
                SELECT turn, run, model, max(place) AS place, count(DISTINCT model) AS several FROM told GROUP BY turn, run;
            UPDATE models SET model = NULL WHERE place < :decided AND several > 1;
            CREATE INDEX of_turn ON models (turn, run);
            CREATE TABLE last AS SELECT turn, run, max(rowid) FROM told GROUP BY turn;
            CREATE INDEX of_last ON last (turn);
            UPDATE verdicts SET name = (
                SELECT model FROM models WHERE turn = id AND models.run = coalesce(
                    (SELECT run FROM models WHERE turn = id AND run = verdicts.run),
                    (SELECT run FROM last WHERE turn = id)));
        """.replace(":decided", str(DECIDED))
        )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction: else each row is one of its own."""
        self._database.execute("BEGIN")
        yield
        self._database.execute("COMMIT")


_MODEL = {"route.decided": "chosen_model", "llm.call_completed": "model"}
"""What a trace calls the model."""


def _instant(time: str) -> float:
    """An ISO 8601 time in seconds; one without an offset is UTC."""
    moment = datetime.fromisoformat(time)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _group(key: Key, rows: Iterable[tuple[Any, ...]], min_confidence: float, down: int) -> Group:
    scores, confidences = array("d"), array("d")
    cost, msat = Cost.zero(), Cost.zero("msat")
    unpriced = escalated = exhausted = 0
    for _, _, score, confidence, usd, other, escalates, exhausts in rows:
        if confidence >= min_confidence:
            scores.append(score)
        confidences.append(confidence)
        if usd is None:
            unpriced += 1
        elif usd != "0":
            cost = cost + Cost(usd)
        if other not in ("0", None):
            msat = msat + Cost(other, "msat")
        escalated += escalates
        exhausted += exhausts
    count = len(confidences)
    sure = mean(confidences) if count else None
    return Group(key, count, scores, sure, cost, msat, unpriced, down, escalated, exhausted)


NOTHING = _group((None, None), (), 0.0, 0)
"""The figures of no verdict at all."""
