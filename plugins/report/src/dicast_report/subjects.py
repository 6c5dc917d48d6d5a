"""Subjects of a run with their results, from the events of its ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import attrs

from dicast import Entry, Event, Query
from dicast.reporting import failure_text

Read = Callable[[Query], Iterator[Entry]]
"""Reader of a ledger: ``Ledger.read`` or ``RunContext.read``."""

STARTED = "run.started"

COMPLETED, FAILED = "eval.completed", "eval.failed"
RECORD_COMPLETED, RECORD_FAILED = "record.completed", "record.failed"
ENDS = (COMPLETED, FAILED, RECORD_COMPLETED, RECORD_FAILED)
"""Events with the result of a subject."""

RECORD = "record"
"""Label of a failure that left a row without a record."""

Key = tuple[str, str]


@attrs.define(eq=False)
class SubjectResults:
    """One subject: *results* has the payload of each label's verdict or failure, *record* a task's record of a row.

    *place* is the number of its first event in the ledger, *time* the time of this event, *events* the number of its events.
    """

    kind: str
    id: str
    session_id: str | None
    place: int
    results: dict[str, Mapping[str, Any]] = attrs.field(factory=dict)
    record: Mapping[str, Any] | None = None
    events: int = 0
    time: str = ""

    @property
    def key(self) -> Key:
        """The subject's kind and id."""
        return self.kind, self.id

    def take(self, event: Event) -> None:
        """Store the payload of *event*; the newest of a label counts."""
        self.events += 1
        if event.type == RECORD_COMPLETED:
            self.record = event.payload
            self.results.pop(RECORD, None)
        elif event.type == RECORD_FAILED:
            mode, message = event.payload.get("failure_mode"), event.payload.get("error")
            self.results[RECORD] = {"judge": RECORD, "failure_mode": mode, "error_message": message}
        else:
            payload: Mapping[str, Any] = event.payload
            self.results[str(payload["judge"])] = payload

    def merge(self, newer: SubjectResults) -> None:
        """Store the results of judging the subject again."""
        self.results.update(newer.results)
        self.record = newer.record or self.record
        if newer.record is not None and RECORD not in newer.results:
            self.results.pop(RECORD, None)

    def failures(self) -> Iterator[tuple[str, str]]:
        """Yield the labels without a verdict, with the kind of failure. A record's failure counts only if no verdict failed with it."""
        failures = [(label, failure_text(end)) for label, end in self.results.items() if "failure_mode" in end]
        return iter([failure for failure in failures if failure[0] != RECORD] or failures)


def read_subjects(read: Read, run_id: str) -> Iterator[SubjectResults]:
    """Yield the subjects in the order of the run. A subject that was judged again is yielded again, with the later results only."""
    return grouped(read(Query(run_id, ENDS)))


def grouped(entries: Iterable[Entry], last: SubjectResults | None = None) -> Iterator[SubjectResults]:
    """Yield one subject for each group of consecutive events. The first events may belong to *last*, the subject of the events before, which is then yielded again."""
    subject, has_events = last, False
    for entry in entries:
        event = entry.event
        if subject is None or (subject.kind, subject.id) != (event.subject_kind, event.subject_id):
            if subject is not None and has_events:
                yield subject
            key = str(event.subject_kind), str(event.subject_id)
            subject = SubjectResults(*key, event.session_id, entry.seq, time=event.time)
        subject.take(event)
        has_events = True
    if subject is not None and has_events:
        yield subject


def event_of(read: Read, run_id: str, *types: str) -> Event | None:
    """Return the newest event of *types* in the run."""
    return next((entry.event for entry in read(Query(run_id, types, newest_first=True, limit=1))), None)
