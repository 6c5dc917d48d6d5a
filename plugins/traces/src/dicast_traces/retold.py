"""Subjects that no run has read, put together from the trace events that one has recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import attrs

from dicast import Entry, Event, Subject, TraceEvent
from dicast.toolkit.assembly import Assembly
from dicast.toolkit.sessions import KINDS, subjects

from .history import moment
from .recording import trace_event

_OF_TURN = "feedback_after_messages"
"""What the context of a turn has beyond its session's."""


def traced(entries: Iterable[Entry], session_id: str, kind: str) -> Iterator[Subject]:
    """The subjects of *kind* that the *entries* of one run make of a session, with the context of those that it has read."""
    events: list[TraceEvent] = []
    context: Mapping[str, object] = {}
    for entry in entries:
        if is_trace(entry.event):
            events.append(trace_event(entry.event))
        elif entry.event.type == "subject.read":
            context = context or _context(entry.event)
    session = Assembly(session_id, _in_order(events)).session()
    yield from subjects(attrs.evolve(session, context=context), [each for each in KINDS if each == kind])


def is_trace(event: Event) -> bool:
    """Whether a row is a trace event, and none that the run itself made."""
    return event.subject_kind is None and event.sensitivity == "user_controlled"


def _context(read: Event) -> Mapping[str, object]:
    content = read.payload.get("content")
    found = content.get("context") if isinstance(content, Mapping) else None
    return {key: value for key, value in found.items() if key != _OF_TURN} if isinstance(found, Mapping) else {}


def _in_order(events: list[TraceEvent]) -> list[TraceEvent]:
    """The *events* as they happened, where all have times: a run tells those of one turn after those of another."""
    times = [None if event.time is None else moment(event.time) for event in events]
    if None in times:
        return events
    return [events[place] for place in sorted(range(len(events)), key=lambda place: str(times[place]))]
