"""What the stream is told when a subject is read: its content, and the trace events it is made of."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import orjson

from ..errors import DataError
from ..model import Due, Event, TraceEvent
from .stream import Stream

OWN_TYPES = (
    "run.",
    "subject.",
    "eval.",
    "record.",
    "aggregate.",
    "comparison.",
    "spend.",
    "budget.",
    "task.",
    "source.",
)
"""Types of event that only a run itself tells; a trace's own events of these types are told as ``trace.TYPE``."""


def trace_event(stream: Stream, trace: TraceEvent) -> Event:
    """*trace* as an event of the run, at its own time; a type that belongs to runs themselves is told apart."""
    own = trace.type.startswith(OWN_TYPES)  # an exported trace may hold another run's events; they are not this run's
    id_, now = stream.clock.stamp()
    return Event(
        id_,
        f"trace.{trace.type}" if own else trace.type,
        trace.time or now,
        stream.run_id,
        {**trace.payload, "extra": trace.extra} if trace.extra else trace.payload,
        trace.session_id,
        trace.turn_id,
        sensitivity="user_controlled",
    )


def content(due: Due, run_id: str) -> dict[str, Any]:
    """The payload of ``subject.read`` in the run *run_id*: what is judged, and the SHA-256 of its canonical JSON.

    :raises DataError: when it is not JSON.
    """
    subject = due.subject
    judged = {
        "context": subject.context,
        "input": subject.input,
        "output": subject.output,
        "reference": subject.reference,
    }
    try:
        text = orjson.dumps(judged, option=orjson.OPT_SORT_KEYS)
    except TypeError as error:
        raise DataError(f"subject {subject.id!r} is not JSON: {error}") from error
    told = {"digest": sha256(text).hexdigest(), "content": judged}
    return told if due.from_run in (None, run_id) else {**told, "from_run": due.from_run}
