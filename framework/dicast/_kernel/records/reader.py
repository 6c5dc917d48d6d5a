"""A run's records, read out of its events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from ..asking.record import columns
from ..contract.protocols import Ledger
from ..events import (
    EVAL_COMPLETED,
    EVAL_FAILED,
    RECORD_COMPLETED,
    RECORD_FAILED,
    RUN_COMPLETED,
    RUN_STARTED,
    SUBJECT_READ,
    VERDICT_ENDS,
)
from ..pipeline.labels import recorded_labels, recorded_score_label
from ..plan.sections import METRICS
from ..values import Event, Query, Record, Results, Subject
from ..values.passes import PassRule
from ..values.payloads import value_of
from .passes import ledger_passes, recorded_rule

TYPES = (RECORD_COMPLETED, RECORD_FAILED, EVAL_COMPLETED, EVAL_FAILED)
"""The events that :class:`RecordReader` reads."""

Found = tuple[tuple[str, str, str | None], Record | None, Mapping[str, None], Record | None]
"""A subject's kind, id and session; its record, None where nothing of it was completed; the metrics and judges that did not score it; and the
payload of its newest ``record.failed``, None where its record was completed."""


class RecordReader:
    """Finds the records in the events of one run, whose ``run.started`` had the payload *started*.

    Where no extractor says what the scores are, they are the verdicts': ``metrics.scores`` has what each metric and judge said of
    the subject, by label, unless the task reported scores itself. Where verdicts alone make the records, their rows are those that the
    subjects were read from, as far as these are known. With *late*, a subject that something failed for comes last,
    since what was retried stands further on.
    """

    def __init__(self, started: Mapping[str, Any], *, late: bool = False) -> None:
        self.types = TYPES[:2] if started.get("extractors") else TYPES
        self._label = recorded_score_label(started)
        self._rule = PassRule.of(started)
        self._counts_all = len(recorded_labels(started)) > 1
        self._metrics = {label: started.get("on", {}).get(label) for label in started.get("metrics", ())}
        self.is_bare = not (started.get("task") or started.get("extractors"))  # verdicts alone make the records
        self._late, self._rows = late, dict[tuple[str, str], Mapping[str, Any]]()
        self._told: list[Event] = []
        self._waiting: dict[tuple[str | None, str | None], list[Event]] = {}

    def read(self, events: Iterable[Event]) -> Iterator[Found]:
        """The subjects with their records, each once the next subject's first event is there."""
        for event in events:
            if event.type == SUBJECT_READ and event.payload.get("content"):
                self.know(_subject_of(event))
            elif event.type in self.types:
                if self._told and _subject(self._told[0]) != _subject(event):
                    yield from self._next()
                self._told.append(event)

    def know(self, subject: Subject) -> None:
        """Keep the row of *subject* until :meth:`rest`, or until its record is found."""
        if self.is_bare:
            self._rows[subject.kind, subject.id] = columns(subject)

    def rest(self) -> Iterator[Found]:
        """The record of the subject that came last, and those that wait for what was retried."""
        yield from self._next()
        for told in self._waiting.values():
            yield self._found(told)
        self._waiting.clear()
        self._rows.clear()

    def _next(self) -> Iterator[Found]:
        told, self._told = self._told, []
        if self._late and any(_subject(event) in self._waiting or event.type.endswith(".failed") for event in told):
            self._waiting.setdefault(_subject(told[0]), []).extend(told)
        elif told:
            yield self._found(told)

    def _found(self, told: Sequence[Event]) -> Found:
        """What the events *told* of one subject come to; the newest of a kind counts."""
        kind, subject_id, session = str(told[0].subject_kind), str(told[0].subject_id), told[0].session_id
        named = {"id": subject_id} if session is None else {"id": subject_id, "session_id": session}
        row = self._rows.pop((kind, subject_id), None)
        record = next((event.payload for event in reversed(told) if event.type == RECORD_COMPLETED), None)
        metrics: Any = record["metrics"] if record else {}
        missing: Mapping[str, None] = {}
        if {"score", "scores"}.isdisjoint(metrics) and any(event.type in VERDICT_ENDS for event in told):
            scored_by, found, missing = self._scores(told)
            if any(event.type == EVAL_COMPLETED for event in told):
                by = {} if scored_by is None else {"scored_by": scored_by}
                record = {**(record or {"row": row or named}), **by, "metrics": {**metrics, **found}}
                record |= self._combined(told)
        failed = next((event.payload for event in reversed(told) if event.type in TYPES[:2]), None)
        is_failed = failed is not None and not any(event.type == RECORD_COMPLETED for event in told)
        return (kind, subject_id, session), record, missing, failed if is_failed else None

    def _combined(self, told: Sequence[Event]) -> dict[str, object]:
        """Return the score of all metrics together, where there are several, as the record's ``combined``, and whether it passes."""
        ends = [event for event in told if event.type in VERDICT_ENDS and event.payload["judge"] == METRICS]
        is_known = len(self._metrics) > 1 and bool(ends) and ends[-1].type == EVAL_COMPLETED
        if not is_known:
            return {}
        payload: Mapping[str, Any] = ends[-1].payload
        return {"combined": payload["score"], "combined_passes": self._rule.verdict(METRICS, payload)}

    def _scores(self, told: Sequence[Event]) -> tuple[str | None, dict[str, object], Mapping[str, None]]:
        """Return the label of the score, the scores that the events *told* of a subject hold as a record's metrics, and the labels without one.

        A run of several labels has no ``score`` unless one of them is the run's.
        """
        newest = {str(event.payload["judge"]): event for event in told if event.type in VERDICT_ENDS}
        verdicts: dict[str, Any] = {label: one.payload for label, one in newest.items() if one.type == EVAL_COMPLETED}
        kind, scores, flags = told[0].subject_kind, dict[str, object](), dict[str, object]()
        for label, verdict in verdicts.items():
            signals = verdict["signals"]
            scores |= signals["metrics"] | signals.get("raw", {}) if label == METRICS else {label: verdict["score"]}
        if self._counts_all and METRICS in verdicts and (combined := value_of(verdicts[METRICS])) is not None:
            scores[METRICS] = combined
            if (passes := self._rule.verdict(METRICS, verdicts[METRICS])) is not None and self._rule.every:
                flags = {"score_flags": {METRICS: passes}}  # each metric has to pass, which no line of the score says
        metrics = [label for label, on in self._metrics.items() if METRICS in newest and (not on or kind in on)]
        unnamed = (
            () if self._counts_all else (METRICS,)
        )  # a record names all metrics together only next to other labels
        missing = {label: None for label in (*newest, *metrics) if label not in (*unnamed, *scores)}
        whose = self._label
        if whose is None and not self._counts_all:
            whose = next(iter(newest))
        value: Any = value_of(verdicts[whose]) if whose in verdicts else scores.get(whose) if whose else None
        unknown = {"score": None} if whose is None else {}  # of several labels no score is the run's
        return whose, {"scores": scores} | flags | (unknown if value is None else {"score": value}), missing


def results(ledger: Ledger, run_id: str) -> Results:
    """The records of the run *run_id*, which are read each time they are asked for.

    :raises LookupError: when the ledger has no such run.
    """
    begun = next(iter(ledger.read(Query(run_id=run_id, types=(RUN_STARTED,), limit=1))), None)
    if begun is None:
        raise LookupError(run_id)
    started: Mapping[str, Any] = begun.event.payload

    def records() -> Iterator[tuple[str, Record]]:
        reader = RecordReader(started, late=True)
        events = (entry.event for entry in ledger.read(Query(run_id=run_id, types=reader.types)))
        for (kind, subject_id, _), record, _, _ in chain(reader.read(events), reader.rest()):
            if record is not None:
                yield subject_id, {"subject_kind": kind, **record}

    def rows() -> Iterator[tuple[tuple[str, str], Mapping[str, Any]]]:
        read = ledger.read(Query(run_id=run_id, types=(SUBJECT_READ,))) if RecordReader(started).is_bare else ()
        subjects = (_subject_of(entry.event) for entry in read if entry.event.payload.get("content"))
        return (((subject.kind, subject.id), columns(subject)) for subject in subjects)

    counting = {key: value for key, value in started["fingerprints"].items() if not key.startswith(_BESIDE)}
    ended = Query(run_id=run_id, types=(RUN_COMPLETED,), newest_first=True, limit=1)
    document: Any = next((entry.event.payload for entry in ledger.read(ended)), {})
    name, pass_at = str(started.get("name")), started.get("pass_at") or {}  # which earlier versions did not tell
    rule = recorded_rule(started)
    passes = partial(ledger_passes, ledger.read, run_id, rule)
    return Results(
        run_id,
        name,
        records,
        counting,
        document.get("models") or {},
        pass_at,
        rows,
        rule,
        passes,
        begun.seq,
        tuple(started.get("raw", ())),
        document.get("adapted") or {},
    )


_BESIDE = ("aggregates[", "early_stop[")
"""Fingerprints of what changes no number of a subject."""


def _subject_of(read: Event) -> Subject:
    """The subject whose ``subject.read`` *read* is."""
    given: Any = read.payload["content"]
    return Subject(str(read.subject_kind), str(read.subject_id), **given, session_id=read.session_id)


def _subject(event: Event) -> tuple[str | None, str | None]:
    return event.subject_kind, event.subject_id
