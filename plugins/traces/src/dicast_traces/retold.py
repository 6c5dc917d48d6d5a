"""Subjects that no run has read, assembled from the trace events that a run has recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import attrs

from dicast import Entry, Event, Subject, TraceEvent
from dicast.toolkit.assembly import Assembly
from dicast.toolkit.sessions import KINDS, subjects

from .history import moment
from .recording import trace_event

_OF_TURN = "feedback_after_messages"
"""Fields of a turn's context that its session does not have."""


def traced(entries: Iterable[Entry], session_id: str, kind: str) -> Iterator[Subject]:
    """Yield the subjects of *kind* in a session, from the *entries* of one run about it, with the context of the subjects that the run has read."""
    events: list[TraceEvent] = []
    context: Mapping[str, object] = {}
    for entry in entries:
        if is_trace(entry.event):
            events.append(trace_event(entry.event))
        elif entry.event.type == "subject.read":
            context = context or _context(entry.event)
    session = Assembly(session_id, _in_order(events)).session()
    yield from subjects(attrs.evolve(session, context=context), [name for name in KINDS if name == kind])


def is_trace(event: Event) -> bool:
    """Return True if a row is a trace event, not an event of the run."""
    return event.subject_kind is None and event.sensitivity == "user_controlled"


def _context(read: Event) -> Mapping[str, object]:
    content = read.payload.get("content")
    stored = content.get("context") if isinstance(content, Mapping) else None
    return {key: value for key, value in stored.items() if key != _OF_TURN} if isinstance(stored, Mapping) else {}


def _in_order(events: list[TraceEvent]) -> list[TraceEvent]:
    """Return the *events* in the order of their times, if all have times: a run records the events of one turn after another."""
    times = [None if event.time is None else moment(event.time) for event in events]
    if None in times:
        return events
    return [events[place] for place in sorted(range(len(events)), key=lambda place: str(times[place]))]
