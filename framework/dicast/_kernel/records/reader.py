"""A run's records, read out of its events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from ..contract.protocols import Ledger
from ..events import (
    EVAL_COMPLETED,
    EVAL_FAILED,
    RECORD_COMPLETED,
    RECORD_FAILED,
    RUN_COMPLETED,
    RUN_STARTED,
    VERDICT_ENDS,
)
from ..pipeline.sections import METRICS
from ..values import Event, Query, Record, Results

TYPES = (RECORD_COMPLETED, RECORD_FAILED, EVAL_COMPLETED, EVAL_FAILED)
"""The events that :class:`RecordReader` reads."""

Found = tuple[tuple[str, str, str | None], Record | None]
"""A subject's kind, id and session, and its record; None where nothing of it was completed."""


class RecordReader:
    """Finds the records in the events of one run, whose ``run.started`` had the payload *started*.

    Where no extractor says what the scores are, they are the verdicts': ``metrics.scores`` has what each metric and judge said of
    the subject, by label, unless the task reported scores itself. With *late*, a subject that something failed for comes last,
    since what was retried stands further on.
    """

    def __init__(self, started: Mapping[str, Any], *, late: bool = False) -> None:
        self.types = TYPES[:2] if started.get("extractors") else TYPES
        self._counted: Sequence[str] = started.get("counted", ())
        self._late = late
        self._told: list[Event] = []
        self._waiting: dict[tuple[str | None, str | None], list[Event]] = {}

    def read(self, events: Iterable[Event]) -> Iterator[Found]:
        """The subjects with their records, each once the next subject's first event is there."""
        for event in events:
            if event.type in self.types:
                if self._told and _subject(self._told[0]) != _subject(event):
                    yield from self._next()
                self._told.append(event)

    def rest(self) -> Iterator[Found]:
        """The record of the subject that came last, and those that wait for what was retried."""
        yield from self._next()
        for told in self._waiting.values():
            yield _found(told, self._counted)
        self._waiting.clear()

    def _next(self) -> Iterator[Found]:
        told, self._told = self._told, []
        if self._late and any(_subject(event) in self._waiting or event.type.endswith(".failed") for event in told):
            self._waiting.setdefault(_subject(told[0]), []).extend(told)
        elif told:
            yield _found(told, self._counted)


def results(ledger: Ledger, run_id: str) -> Results:
    """The records of the run *run_id*, which are read each time they are asked for.

    :raises LookupError: when the ledger has no such run.
    """
    begun = next((entry.event for entry in ledger.read(Query(run_id=run_id, types=(RUN_STARTED,), limit=1))), None)
    if begun is None:
        raise LookupError(run_id)
    started: Mapping[str, Any] = begun.payload

    def records() -> Iterator[tuple[str, Record]]:
        reader = RecordReader(started, late=True)
        events = (entry.event for entry in ledger.read(Query(run_id=run_id, types=reader.types)))
        for (kind, subject_id, _), record in chain(reader.read(events), reader.rest()):
            if record is not None:
                yield subject_id, {"subject_kind": kind, **record}

    counting = {key: value for key, value in started["fingerprints"].items() if not key.startswith(_BESIDE)}
    ended = Query(run_id=run_id, types=(RUN_COMPLETED,), newest_first=True, limit=1)
    answered: Any = next((entry.event.payload.get("models") for entry in ledger.read(ended)), None)
    pass_at = started.get("pass_at") or {}  # which earlier versions did not tell
    return Results(run_id, str(started.get("name")), records, counting, answered or {}, pass_at)


_BESIDE = ("aggregates[", "early_stop[")
"""Fingerprints of what changes no number of a subject."""


def _subject(event: Event) -> tuple[str | None, str | None]:
    return event.subject_kind, event.subject_id


def _found(told: Sequence[Event], counted: Sequence[str]) -> Found:
    """What the events *told* of one subject come to; the newest of a kind counts. *counted* as in ``run.started``."""
    first, record = told[0], None
    for event in told:
        if event.type == RECORD_COMPLETED:
            record = event.payload
    if any(event.type == EVAL_COMPLETED for event in told):
        session = {} if first.session_id is None else {"session_id": first.session_id}
        record = record or {"row": {"id": first.subject_id, **session}, "metrics": {}}
        metrics: Any = record["metrics"]
        if "score" not in metrics and "scores" not in metrics:
            scored_by, found = _scores(told, counted)
            record = {**record, "scored_by": scored_by, "metrics": {**metrics, **found}}
    return (str(first.subject_kind), str(first.subject_id), first.session_id), record


def _scores(told: Iterable[Event], counted: Iterable[str]) -> tuple[str, dict[str, object]]:
    """The first label that counts, and what the events *told* say as a record's metrics: no ``score`` where that label failed."""
    newest = {str(event.payload["judge"]): event for event in told if event.type in VERDICT_ENDS}
    verdicts: dict[str, Any] = {label: event.payload for label, event in newest.items() if event.type == EVAL_COMPLETED}
    scores: dict[str, object] = {}
    for label, verdict in verdicts.items():
        scores |= verdict["signals"]["metrics"] if label == METRICS else {label: verdict["score"]}
    first = next(label for label in (*counted, *newest) if label in newest)
    return first, {"scores": scores} | ({"score": verdicts[first]["score"]} if first in verdicts else {})
