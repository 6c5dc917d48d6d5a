"""Report of a run that may judge a subject more than once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ...toolkit.temporary import temporary_database
from ..events import RUN_STARTED, SUBJECT_READ, VERDICT_ENDS
from ..plan.sections import METRICS
from ..values import Entry, Event, Query
from .fold import Report
from .lowest import WORST, LowestScores
from .tally import is_example

MOST_FAILED = 1_000
"""The most failures that are remembered, so that later verdicts of their subjects can remove them."""

RECENT = 1_000
"""The verdicts in memory. Older verdicts of subjects that are judged again are read from the ledger."""

_COUNTS = ("judged", "scored", "failed", "unaffordable")


class CurrentReport(Report):
    """Report in which the newest verdict of each label on each subject counts. Until :meth:`settle` the older verdicts count too.

    Its end takes as long as that of a report without repeated judgments: older verdicts have a report of their own, which is subtracted.

    :param read: reads the ledger, which has the observed events.
    """

    most_shown = MOST_FAILED

    def __init__(self, read: Callable[[Query], Iterator[Entry]]) -> None:
        super().__init__()
        self._read_ledger, self._older = read, Report()
        self._recent: dict[tuple[str, str, str], Event] = {}
        self.lowest: _CurrentLowest = _CurrentLowest()
        self._database = temporary_database(
            self, "CREATE TABLE seen(kind, id, label, times, PRIMARY KEY (kind, id, label)) WITHOUT ROWID"
        )

    def observe_all(self, events: Iterable[Any]) -> None:
        """Count *events* in their order; of a subject that was read before, only the verdicts."""
        pending: list[Any] = []
        for event, times in self._numbered(events):
            if event.type == SUBJECT_READ and times > 1:
                continue
            if event.type in VERDICT_ENDS:
                if times > 1:
                    super().observe_all(pending)
                    pending = []
                    self._replace(event, times)
                self._remember(event)
            elif event.type == RUN_STARTED:
                self._older.observe(event)
            pending.append(event)
        super().observe_all(pending)

    def settle(self) -> bool:
        """Subtract the verdicts that newer verdicts replaced. Return False if that is impossible: then the report must be made anew."""
        older = self._older
        older.close()
        self.close()
        failures, self.failed_shown = self.failed_shown, []
        for failure in failures:
            if is_example(self.failed_shown, failure["failure_mode"], failure.get("origin")):
                self.failed_shown.append(failure)
        if self.weights or self.corrections is not None or any(tally.spared for tally in older.metrics.values()):
            return not older.judged + older.unaffordable
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) - getattr(older, name))
        self.failures.subtract(older.failures)
        self.tiers.subtract(older.tiers)
        for label, tally in older.metrics.items():
            self.metrics[label].subtract(tally)
        for label, tally in older.judges.items():
            self.judges[label].subtract(tally)
        for label, watched in older.watched.items():
            self.watched[label].subtract(watched, has_own_passes=label not in self.metrics)
        for label in self.counted & self.watched.keys():
            self.judges[label].lowest, self.judges[label].highest = self.watched[label].scores.ends()
        self.evidence.subtract(older.evidence)
        self.endings.subtract(older.endings)
        return True

    def _numbered(self, events: Iterable[Any]) -> list[tuple[Any, int]]:
        """Return *events*, each reading or verdict with its number among those of its subject and label, from 1."""
        query = "INSERT INTO seen VALUES (?, ?, ?, 1) ON CONFLICT DO UPDATE SET times = times + 1 RETURNING times"
        numbered: list[tuple[Any, int]] = []
        self._database.execute("BEGIN")  # one transaction for all events
        for event in events:
            times = 1
            if event.type == SUBJECT_READ or event.type in VERDICT_ENDS:
                unit = event.subject_kind, event.subject_id, str(event.payload.get("judge", ""))
                (times,) = self._database.execute(query, unit).fetchone()
            numbered.append((event, times))
        self._database.execute("COMMIT")
        return numbered

    def _replace(self, event: Event, times: int) -> None:
        """Count the verdict before *event* as older; *event* is the verdict number *times* of its label on its subject."""
        kind, id_, label = unit = _unit(event)
        older = self._recent.get(unit)
        if older is None:
            query = Query(self.run_id, VERDICT_ENDS, kind, id_)
            verdicts = [entry.event for entry in self._read_ledger(query) if entry.event.payload["judge"] == label]
            older = verdicts[times - 2]
        self._older.observe(older)
        if label == self.lowest_label or (label == METRICS and self.lowest_label in self.metrics):
            self.lowest.remove(kind, id_)
        names = {"subject_kind": kind, "subject_id": id_, "judge": label}
        self.failed_shown[:] = [shown for shown in self.failed_shown if not names.items() <= shown.items()]

    def _remember(self, event: Event) -> None:
        """Keep a verdict in memory, because most of the subjects that are judged again are judged again soon."""
        unit = _unit(event)
        self._recent.pop(unit, None)
        self._recent[unit] = event
        if len(self._recent) > RECENT:
            del self._recent[next(iter(self._recent))]


def _unit(event: Event) -> tuple[str, str, str]:
    return str(event.subject_kind), str(event.subject_id), str(event.payload["judge"])


class _CurrentLowest(LowestScores):
    """The lowest of the newest scores."""

    def __init__(self) -> None:
        super().__init__()
        self._database = temporary_database(
            self, "CREATE TABLE scores(kind, id, length INTEGER, score REAL, PRIMARY KEY (kind, id)) WITHOUT ROWID"
        )

    def add(self, subjects: Iterable[tuple[str | None, str | None]], scores: Sequence[float | None]) -> None:
        """Count *scores* of *subjects*, each a kind and an id; a score replaces the previous score of its subject."""
        counted = ((subject, score) for subject, score in zip(subjects, scores, strict=True) if score is not None)
        rows = [(kind, id_, len(str(id_)), score) for (kind, id_), score in counted]
        self._database.execute("BEGIN")
        self._database.executemany("INSERT OR REPLACE INTO scores (kind, id, length, score) VALUES (?, ?, ?, ?)", rows)
        self._database.execute("COMMIT")

    def remove(self, kind: str, subject_id: str) -> None:
        """Remove the score of a subject, if it has one."""
        self._database.execute("DELETE FROM scores WHERE kind = ? AND id = ?", (kind, subject_id))

    def listed(self) -> list[dict[str, object]]:
        """Return the subjects, lowest first, in the order of :class:`LowestScores`."""
        query = "SELECT kind, id, score FROM scores ORDER BY score, length, id, kind LIMIT ?"
        rows = self._database.execute(query, (WORST,))
        return [{"subject_kind": kind, "subject_id": id_, "score": score} for kind, id_, score in rows]
