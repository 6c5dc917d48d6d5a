"""The subjects of a run, each with all that was said of it, out of the events of its ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import attrs

from dicast import Entry, Event, Query

Read = Callable[[Query], Iterator[Entry]]
"""Reads a ledger: ``Ledger.read``, or that of a run's context."""

COMPLETED, FAILED = "eval.completed", "eval.failed"
RECORD_COMPLETED, RECORD_FAILED = "record.completed", "record.failed"
ENDS = (COMPLETED, FAILED, RECORD_COMPLETED, RECORD_FAILED)
"""The events that say what became of a subject."""

RECORD = "record"
"""Under which label a failure stands that left a row without a record."""

Key = tuple[str, str]


@attrs.define(eq=False)
class Told:
    """One subject: *ended* has the payload of each label's verdict or failure, *record* what a task made of a row."""

    kind: str
    id: str
    session_id: str | None
    place: int
    ended: dict[str, Mapping[str, Any]] = attrs.field(factory=dict)
    record: Mapping[str, Any] | None = None

    @property
    def key(self) -> Key:
        """Its kind and id."""
        return self.kind, self.id

    def take(self, event: Event) -> None:
        """Note what *event* says; the newest of a label counts."""
        if event.type == RECORD_COMPLETED:
            self.record = event.payload
            self.ended.pop(RECORD, None)
        elif event.type == RECORD_FAILED:
            failure = {"failure_mode": event.payload.get("failure_mode"), "error_message": event.payload.get("error")}
            self.ended[RECORD] = failure
        else:
            payload: Mapping[str, Any] = event.payload
            self.ended[str(payload["judge"])] = payload

    def merge(self, newer: Told) -> None:
        """Note what was said later, when the subject was judged again."""
        self.ended.update(newer.ended)
        self.record = newer.record or self.record
        if newer.record is not None and RECORD not in newer.ended:
            self.ended.pop(RECORD, None)

    def failures(self) -> Iterator[tuple[str, str]]:
        """The labels without a verdict, with the kind of failure; a record's only where no verdict failed with it."""
        found = [(label, str(end["failure_mode"])) for label, end in self.ended.items() if "failure_mode" in end]
        return iter([one for one in found if one[0] != RECORD] or found)


def told_subjects(read: Read, run_id: str) -> Iterator[Told]:
    """The subjects of the run, in its order. One that was judged again comes again, with the later verdicts alone."""
    return _grouped(entry.event for entry in read(Query(run_id, ENDS)))


def _grouped(events: Iterable[Event]) -> Iterator[Told]:
    """The events of one subject stand together."""
    told: Told | None = None
    for place, event in enumerate(events):
        if told is None or (told.kind, told.id) != (event.subject_kind, event.subject_id):
            if told is not None:
                yield told
            told = Told(str(event.subject_kind), str(event.subject_id), event.session_id, place)
        told.take(event)
    if told is not None:
        yield told
