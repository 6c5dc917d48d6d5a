"""Records of a run, assembled from its events."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from typing import Any

import attrs

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
from ..pipeline.ledger_path import ledger_option
from ..plan.labels import recorded_labels, recorded_score_label
from ..plan.sections import METRICS
from ..report.caps import reached_caps
from ..report.failure_words import may_pass_again
from ..resume.open_runs import RunCommand, command_of
from ..values import RECORDED_PREFIX, Event, Query, Record, Results, Subject
from ..values.passes import PassRule, values_of
from ..values.payloads import value_of
from .contents import ledger_contents
from .ends import RunEnds, read_ends
from .passes import ledger_passes, recorded_rule

TYPES = (RECORD_COMPLETED, RECORD_FAILED, EVAL_COMPLETED, EVAL_FAILED)
"""Types of events that :class:`RecordReader` reads."""

SubjectRecord = tuple[tuple[str, str, str | None], Record | None, Mapping[str, None], Record | None]
"""A subject's kind, id and session; its record, None if nothing was completed; the metrics and judges that did not score it; and the
payload of its newest ``record.failed``, None if its record was completed."""


class RecordReader:
    """Assembler of the records from the events of one run, whose ``run.started`` had the payload *started*.

    Without extractors the verdicts provide the scores: ``metrics.scores`` has the value of each metric and judge, by label, unless the
    task reported scores itself. If verdicts alone make the records, their rows are the rows of the subjects, as far as known. With
    *late*, a subject with a failure comes last, because its retries are recorded later. *weights* are the weights of subjects that differ from 1.
    """

    def __init__(self, started: Mapping[str, Any], *, late: bool = False) -> None:
        self.types = TYPES[:2] if started.get("extractors") else TYPES
        self._label = recorded_score_label(started)
        self._rule = PassRule.of(started)
        self._counts_all = len(recorded_labels(started)) > 1
        self._metrics = {label: started.get("on", {}).get(label) for label in started.get("metrics", ())}
        self.is_bare = not (started.get("task") or started.get("extractors"))  # only verdicts make the records
        self._late, self._rows = late, dict[tuple[str, str], Mapping[str, Any]]()
        self.weights: dict[tuple[str, str], float] = {}
        self._pending: list[Event] = []
        self._waiting: dict[tuple[str | None, str | None], list[Event]] = {}

    def read(self, events: Iterable[Event]) -> Iterator[SubjectRecord]:
        """Yield the subjects with their records, each after the first event of the next subject."""
        for event in events:
            if event.type == SUBJECT_READ:
                self._note_weight(str(event.subject_kind), str(event.subject_id), event.payload.get("weight", 1.0))
                if event.payload.get("content"):
                    self.keep_row(_subject_of(event))
            elif event.type in self.types and not str(event.payload.get("judge", "")).startswith(RECORDED_PREFIX):
                if self._pending and _subject(self._pending[0]) != _subject(event):
                    yield from self._next()
                self._pending.append(event)

    def keep_row(self, subject: Subject) -> None:
        """Keep the weight and the row of *subject*; the row until :meth:`rest`, or until its record is complete."""
        self._note_weight(subject.kind, subject.id, subject.weight)
        if self.is_bare:
            self._rows[subject.kind, subject.id] = columns(subject)

    def _note_weight(self, kind: str, id: str, weight: Any) -> None:
        if weight != 1:
            self.weights[kind, id] = float(weight)

    def rest(self) -> Iterator[SubjectRecord]:
        """Yield the record of the last subject, and the records that wait for retries."""
        yield from self._next()
        for events in self._waiting.values():
            yield self._assemble(events)
        self._waiting.clear()
        self._rows.clear()

    def records(self, ends: RunEnds) -> Iterator[tuple[str, Record]]:
        """Yield the ids of the subjects with their records, for a run without a task and extractors, whose rows are not kept. Subjects with equal judgments share values."""
        records = dict[tuple[str, tuple[int, ...]], Record | None]()
        for (kind, id), session, numbers in ends.groups():
            if (kind, numbers) not in records:
                _, records[kind, numbers], _, _ = self._assemble(ends.events(numbers, kind))
            record = records[kind, numbers]
            if record is not None:
                yield id, {"subject_kind": kind, **record, "row": _identity(id, session)}

    def _next(self) -> Iterator[SubjectRecord]:
        events, self._pending = self._pending, []
        if self._late and any(_subject(event) in self._waiting or event.type.endswith(".failed") for event in events):
            self._waiting.setdefault(_subject(events[0]), []).extend(events)
        elif events:
            yield self._assemble(events)

    def _assemble(self, events: Sequence[Event]) -> SubjectRecord:
        """Return the subject with its record, from its *events*; the newest event of each type counts."""
        kind, subject_id, session = str(events[0].subject_kind), str(events[0].subject_id), events[0].session_id
        identity = _identity(subject_id, session)
        row = self._rows.pop((kind, subject_id), None)
        record = next((event.payload for event in reversed(events) if event.type == RECORD_COMPLETED), None)
        metrics: Any = record["metrics"] if record else {}
        missing: Mapping[str, None] = {}
        if {"score", "scores"}.isdisjoint(metrics) and any(event.type in VERDICT_ENDS for event in events):
            scored_by, scores, missing = self._scores(events)
            if any(event.type == EVAL_COMPLETED for event in events):
                label = {} if scored_by is None else {"scored_by": scored_by}
                record = {**(record or {"row": row or identity}), **label, "metrics": {**metrics, **scores}}
                record |= self._combined(events)
                record |= self._held_back(events)
        if record is not None and (weight := self.weights.get((kind, subject_id))) is not None:
            record = {**record, "weight": weight}
        failed = next((event.payload for event in reversed(events) if event.type in TYPES[:2]), None)
        is_failed = failed is not None and not any(event.type == RECORD_COMPLETED for event in events)
        return (kind, subject_id, session), record, missing, failed if is_failed else None

    def _combined(self, events: Sequence[Event]) -> dict[str, object]:
        """Return the score of all metrics together as the record's ``combined``, with its pass flag, if there are several metrics."""
        ends = [event for event in events if event.type in VERDICT_ENDS and event.payload["judge"] == METRICS]
        is_known = len(self._metrics) > 1 and bool(ends) and ends[-1].type == EVAL_COMPLETED
        if not is_known:
            return {}
        payload: Mapping[str, Any] = ends[-1].payload
        return {"combined": payload["score"], "combined_passes": self._rule.verdict(METRICS, payload)}

    def _held_back(self, events: Sequence[Event]) -> dict[str, object]:
        """Return the labels of the metrics that did not run because of a proxy as the record's ``held_back``; empty without any."""
        verdict = next((event for event in reversed(events) if event.payload.get("judge") == METRICS), None)
        if verdict is None or verdict.type != EVAL_COMPLETED:
            return {}
        payload: Mapping[str, Any] = verdict.payload
        known = {*values_of(payload), *(skip["metric"] for skip in payload["skipped"])}
        kind, due = verdict.subject_kind, self._metrics.items()
        labels = [label for label, on in due if label not in known and (not on or kind in on)]
        labels += [METRICS] if labels and value_of(payload) is None else []  # only a raw value may be held back
        return {"held_back": labels} if labels else {}

    def _scores(self, events: Sequence[Event]) -> tuple[str | None, dict[str, object], Mapping[str, None]]:
        """Return the label of the score, the scores in a subject's *events* as a record's metrics, and the labels without a score.

        A run of several labels has no ``score`` unless one of them is the label of the run's score.
        """
        newest = {str(event.payload["judge"]): event for event in events if event.type in VERDICT_ENDS}
        verdicts: dict[str, Any] = {label: end.payload for label, end in newest.items() if end.type == EVAL_COMPLETED}
        kind, scores, flags = events[0].subject_kind, dict[str, object](), dict[str, object]()
        for label, verdict in verdicts.items():
            signals = verdict["signals"]
            scores |= signals["metrics"] | signals.get("raw", {}) if label == METRICS else {label: verdict["score"]}
        if self._counts_all and METRICS in verdicts and (combined := value_of(verdicts[METRICS])) is not None:
            scores[METRICS] = combined
            if (passes := self._rule.verdict(METRICS, verdicts[METRICS])) is not None and self._rule.every:
                flags = {
                    "score_flags": {METRICS: passes}
                }  # each metric has to pass; no line of the score expresses that
        metrics = [label for label, on in self._metrics.items() if METRICS in newest and (not on or kind in on)]
        unnamed = (
            () if self._counts_all else (METRICS,)
        )  # a record names all metrics together only next to other labels
        missing = {label: None for label in (*newest, *metrics) if label not in (*unnamed, *scores)}
        score_label = self._label
        if score_label is None and not self._counts_all:
            score_label = next(iter(newest))
        value: Any = (
            value_of(verdicts[score_label])
            if score_label in verdicts
            else scores.get(score_label)
            if score_label
            else None
        )
        unknown = {"score": None} if score_label is None else {}  # no score of several labels is the run's
        return score_label, {"scores": scores} | flags | (unknown if value is None else {"score": value}), missing


def results(ledger: Ledger, run_id: str) -> Results:
    """Return the results of the run *run_id*. Its verdicts are read from the ledger once, the records of a task on each use.

    :raises LookupError: when the ledger has no such run.
    """
    start = next(iter(ledger.read(Query(run_id=run_id, types=(RUN_STARTED,), limit=1))), None)
    if start is None:
        raise LookupError(run_id)
    started: Mapping[str, Any] = start.event.payload

    ends = cache(partial(read_ends, ledger.read, run_id))

    def records() -> Iterator[tuple[str, Record]]:
        reader = RecordReader(started, late=True)
        if reader.is_bare and (read := ends()) is not None:
            yield from reader.records(read)
            return
        events = (entry.event for entry in ledger.read(Query(run_id=run_id, types=reader.types)))
        for (kind, subject_id, _), record, _, _ in chain(reader.read(events), reader.rest()):
            if record is not None:
                yield subject_id, {"subject_kind": kind, **record}

    def rows() -> Iterator[tuple[tuple[str, str], Mapping[str, Any]]]:
        read = ledger.read(Query(run_id=run_id, types=(SUBJECT_READ,))) if RecordReader(started).is_bare else ()
        subjects = (_subject_of(entry.event) for entry in read if entry.event.payload.get("content"))
        return (((subject.kind, subject.id), columns(subject)) for subject in subjects)

    counting = {key: value for key, value in started["fingerprints"].items() if not key.startswith(_NOT_SCORING)}
    document = _document(ledger, run_id)
    name, pass_at = str(started.get("name")), started.get("pass_at") or {}  # missing in runs of older versions
    rule = recorded_rule(started)
    passes = partial(ledger_passes, ledger.read, run_id, rule, ends=ends)
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
        start.seq,
        tuple(started.get("raw", ())),
        document.get("adapted") or {},
        partial(_is_weighted, ledger, run_id, document),
        partial(ledger_contents, ledger.read, run_id, started),
        tuple(started.get("gated") or ()),
        (document.get("stopped") or {}).get("reason"),
        {section: options["counting"] for section, options in (started.get("options") or {}).items()},
        *_commands(run_id, started, document, ledger_option({"path": getattr(ledger, "path", None)})),
    )


def in_ledger(run: Results, ledger: Ledger, place: str | None) -> Results:
    """Return *run* with commands that read the *ledger* at *place*, the value of ``--ledger`` of a ledger without a path."""
    start = next(iter(ledger.read(Query(run_id=run.run_id, types=(RUN_STARTED,), limit=1))), None)
    if place is None or start is None:
        return run
    failures, retry = _commands(
        run.run_id, start.event.payload, _document(ledger, run.run_id), ledger_option({"place": place})
    )
    return attrs.evolve(run, failures_command=failures, retry_command=retry)


def _document(ledger: Ledger, run_id: str) -> Mapping[str, Any]:
    """Return the document of the run at its last end; empty for a run that has not ended."""
    query = Query(run_id=run_id, types=(RUN_COMPLETED,), newest_first=True, limit=1)
    return next((entry.event.payload for entry in ledger.read(query)), {})


def _commands(
    run_id: str, started: Mapping[str, Any], document: Mapping[str, Any], option: str
) -> tuple[str, str | None]:
    """Return the command that lists the failures of a run, and the command that judges them again, with *option*, which names the ledger.

    The second one is without the settings of caps that left out subjects of the run of the *document*; None if another judgment fails again.
    """
    command = command_of(started, *shlex.split(option))
    retry = (
        None
        if command is None or not command.is_resumable or not may_pass_again(document)
        else _raising(command, document).retrying(run_id)
    )
    return f"dicast verdicts --run {run_id} --failed{option}", retry


def _raising(command: RunCommand, document: Mapping[str, Any]) -> RunCommand:
    return command.raising(reached_caps(document)) if document else command


def _is_weighted(ledger: Ledger, run_id: str, document: Mapping[str, Any]) -> bool:
    """Return whether subjects of the run have weights, by its *document*; of a run without one, by its readings."""
    if document:
        return has_weights(document)
    return any("weight" in entry.event.payload for entry in ledger.read(Query(run_id=run_id, types=(SUBJECT_READ,))))


def has_weights(document: Mapping[str, Any]) -> bool:
    """Return whether the *document* of a run warns that its subjects have weights."""
    return any(warning.get("kind") == "weights" for warning in document.get("warnings", ()))


_NOT_SCORING = ("aggregates[", "early_stop[")
"""Prefixes of fingerprints that affect no score of a subject."""


def _subject_of(read: Event) -> Subject:
    """Return the subject of the ``subject.read`` event *read*."""
    content: Any = read.payload["content"]
    weight: Any = read.payload.get("weight", 1.0)
    return Subject(str(read.subject_kind), str(read.subject_id), **content, session_id=read.session_id, weight=weight)


def _identity(id: str, session: str | None) -> dict[str, str]:
    return {"id": id} if session is None else {"id": id, "session_id": session}


def _subject(event: Event) -> tuple[str | None, str | None]:
    return event.subject_kind, event.subject_id
