"""Tallies of rows that were judged directly: subjects with equal values share a verdict, which is counted once with its number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from ..plan.sections import METRICS
from ..values import Event
from ..values.judged import JudgedRow
from ..values.passes import PassRule
from .evidence import EvidenceNotes
from .lowest import LowestScores
from .tally import Tally, Watched, tier_of

Payload = Mapping[str, Any]
T = TypeVar("T")


class Tallies(Protocol):
    """Tallies of the report that rows change, and the facts of the run that they need."""

    subjects: int
    judged: int
    scored: int
    subject_kinds: Counter[str]
    tiers: Counter[str]
    counted: frozenset[str]
    started: Mapping[str, Any]
    judges: dict[str, Tally]
    metrics: dict[str, Tally]
    watched: dict[str, Watched]
    evidence: EvidenceNotes
    lowest: LowestScores
    rule: PassRule
    score_label: str | None
    lowest_label: str | None


def note_row(report: Tallies, pending: list[Event | JudgedRow], row: JudgedRow) -> None:
    """Note the evidence of the scores of *row* in *report*, and add it to the *pending* verdicts, which :func:`count_judged` counts."""
    pending.append(row)
    if row.has_notes:
        for label, answer in zip(row.maker.metrics, row.answers, strict=False):
            if answer.signals:
                report.evidence.note_score(label, answer.signals)


def count_judged(report: Tallies, rows: Sequence[JudgedRow]) -> None:
    """Count *rows* as read, judged and scored in *report*."""
    report.subjects += len(rows)
    report.subject_kinds.update([row.maker.kind for row in rows])
    report.judged += len(rows)
    report.scored += len(rows) if METRICS in report.counted else 0


class JudgedRows:
    """Rows of the *report* that were judged directly and count once each, in their order."""

    def __init__(self, report: Tallies, rows: Sequence[JudgedRow]) -> None:
        self._report, self._rows = report, rows
        self._keys = [id(row.verdict) for row in rows]
        self._times = Counter(self._keys)
        self._verdicts = dict(zip(self._keys, [row.verdict for row in rows], strict=True))
        self._sessions = _sessions(rows)

    def count(self) -> None:
        """Count the verdicts, and the values of each metric."""
        report, rows = self._report, self._rows
        tally = report.judges.setdefault(METRICS, Tally())
        for key, verdict in self._verdicts.items():
            tally.add_equal(verdict, self._times[key])
            self._count_items(verdict, self._times[key])
        scores = _each(self._keys, {key: verdict["score"] for key, verdict in self._verdicts.items()})
        if (watched := report.watched.get(METRICS)) is not None:
            passes = {key: report.rule.verdict(METRICS, verdict) for key, verdict in self._verdicts.items()}
            watched.add(self._sessions, scores, _each(self._keys, passes))
        if report.score_label == METRICS:
            report.tiers.update(_each(self._keys, {key: verdict["tier"] for key, verdict in self._verdicts.items()}))
        if report.lowest_label == METRICS:
            report.lowest.add(_names(rows), scores)
        kinds = report.started.get("on", {})
        for label, metric in report.metrics.items():
            on = kinds.get(label)
            judged = [row for row in rows if row.maker.kind in on] if on else rows
            self._count_metric(label, metric, judged)

    def _count_items(self, verdict: Payload, times: int) -> None:
        """Count the basis of each score, and the truth metrics that the proxies spared."""
        metrics = self._report.metrics
        for item in verdict["scores"]:
            metrics[item["metric"]].bases[item.get("basis") or item["tier"]] += times
        for spared in verdict.get("spared", ()):
            metrics[spared["metric"]].spared += spared["runs"] * times

    def _count_metric(self, label: str, metric: Tally, rows: Sequence[JudgedRow]) -> None:
        """Count the values of the metric *label*, which judges *rows*."""
        report = self._report
        is_whole = rows is self._rows
        keys = self._keys if is_whole else [id(row.verdict) for row in rows]
        verdicts = self._verdicts if is_whole else {key: self._verdicts[key] for key in keys}
        passes = {key: report.rule.metric(label, verdict) for key, verdict in verdicts.items()}
        values = {key: verdict["signals"]["metrics"].get(label) for key, verdict in verdicts.items()}
        sessions = self._sessions if is_whole else _sessions(rows)
        metric.passes.add(sessions, _each(keys, passes))
        for key, value in values.items():
            if value is not None:
                metric.add_times(value, self._times[key])
        if label in (report.score_label, report.lowest_label):
            scored = [row for row in rows if values[id(row.verdict)] is not None]
            if label == report.score_label:
                report.tiers.update([tier_of(row.verdict, label) for row in scored])
            if label == report.lowest_label:
                report.lowest.add(_names(scored), [values[id(row.verdict)] for row in scored])
        if (watched := report.watched.get(label)) is not None:
            scores = _each(keys, values)
            watched.add_scores(sessions, scores, None)
            watched.scores.spare(_sessions([row for row, score in zip(rows, scores, strict=True) if score is None]))


def _each(keys: Sequence[int], values: Mapping[int, T]) -> list[T]:
    """Return the value of the verdict of each row. *keys* are the identities of the verdicts, and *values* are by identity."""
    return list(map(values.__getitem__, keys))


def _sessions(rows: Sequence[JudgedRow]) -> list[str | None]:
    return [row.subject.session_id for row in rows]


def _names(rows: Sequence[JudgedRow]) -> Iterator[tuple[str, str]]:
    return ((row.maker.kind, row.subject.id) for row in rows)
