"""Lines of judged subjects with trace events, which a run records between the reading and the start of the judgment.

The line is ``[4, …, [[id, type, time, turn_id, payload], …]]``: the values of the line of a judged subject, and then the trace events. An id of
:data:`_SHORT` characters continues the first :data:`_PREFIX` characters of the id of the first trace event. The turn 0 is the turn of the line. An event with texts
has two more values: their digest and their places; see :mod:`.separation`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from dicast import RESERVED_AREAS, Event

from .makers import JUDGED, Maker
from .separation import Separated, restored

TRACED = 4
"""The first value of a line."""

SUBJECTS = frozenset((JUDGED, TRACED))
"""The first values of the lines of judged subjects."""

_SESSION, _TURN = 3, 4
"""Places of the session and the turn in the line."""

_LEVEL = "user_controlled"
"""Sensitivity of a trace event."""

ITEM_TEXTS = 5
"""The place of the digest of its texts in a trace event that has texts."""

_PREFIX, _SHORT = 22, 4

_MOST_EVENTS, _MOST_BYTES = 1_000, 256 * 1024
"""Most trace events of a line, and most bytes of them."""

Line = Sequence[Any]


def end_of_traces(records: Sequence[Any], at: int) -> int:
    """Return the place after the trace events that follow the reading at the place *at*."""
    read, end, count = records[at], at + 1, len(records)
    session, run_id = read.session_id, read.run_id
    while end < count:
        event = records[end]
        if (
            event.subject_id is not None
            or event.subject_kind is not None
            or event.session_id != session
            or event.run_id != run_id
            or event.sensitivity != _LEVEL
            or event.type.startswith(RESERVED_AREAS)
        ):
            break
        end += 1
    return end


def traced(
    judged: bytes, events: Sequence[Event], payloads: Sequence[tuple[Separated, str | None]], turn: str | None
) -> bytes | None:
    """Return the line of a judged subject, *judged*, with trace *events*; None if they must be lines of their own.

    :param payloads: the payload of each event, and the digest of its texts.
    :param turn: the turn of the judged subject.
    :raises TypeError: if a value is not JSON.
    """
    first = events[0].id
    prefix, items = first[:_PREFIX], []
    is_long = len(first) == _PREFIX + _SHORT
    for event, (payload, digest) in zip(events, payloads, strict=True):
        id_, turn_id = event.id, event.turn_id
        if is_long and id_ is not first and len(id_) == _PREFIX + _SHORT and id_.startswith(prefix):
            id_ = id_[_PREFIX:]
        elif len(id_) == _SHORT:
            return None
        values = id_, event.type, event.time, 0 if turn_id == turn else turn_id, orjson.Fragment(payload.body)
        items.append(values if digest is None else (*values, digest, payload.places))
    if len(items) > _MOST_EVENTS:
        return None
    text = orjson.dumps(items)
    return None if len(text) > _MOST_BYTES else b"[%d%b,%b]" % (TRACED, judged[2:-1], text)


def traces_of(line: Line) -> Sequence[Sequence[Any]]:
    """Return the trace events in the line of a judged subject."""
    traces: Sequence[Sequence[Any]] = line[-1] if line[0] == TRACED else ()
    return traces


def count_of(line: Line, makers: Mapping[str, Maker]) -> int:
    """Return the number of events of the line of a judged subject.

    :raises LookupError: if *makers* does not have its maker.
    """
    return len(makers[line[1]].parts) + len(traces_of(line))


def trace_event(line: Line, item: Sequence[Any], run_id: str, content: Callable[[str], bytes | None]) -> Event:
    """Return the trace event *item* of a line of the run *run_id*. *content* returns the texts with a digest, or None.

    :raises TypeError: if the payload is not an object.
    """
    id_, type_, time, turn, payload, *texts = item
    if not isinstance(payload, dict):
        raise TypeError(f"the payload of event {id_!r} is not an object")
    if len(id_) == _SHORT:
        id_ = line[-1][0][0][:_PREFIX] + id_
    turn_id = line[_TURN] if turn == 0 else turn
    if texts:
        digest, places = texts
        payload = restored(type_, payload, digest, places, content(digest))
    return Event.of(id_, type_, time, run_id, payload, line[_SESSION], turn_id, None, None, _LEVEL)
