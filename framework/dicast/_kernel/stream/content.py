"""Recorded content of a subject, and its trace events."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from types import NoneType
from typing import Any

import orjson

from ..values import MAX_TOKENS, REFUSAL, RESERVED_AREAS, Due, Event, Subject, TraceEvent, normalize_stop_reason
from ..values.errors import DataError
from ..values.names import not_finite
from ..values.subject import PlacedDue
from .stream import Stream

PARTS = ("id", "input", "output", "reference", "session_id")
"""The parts of a subject that may be a column of the data."""

_PLAIN = frozenset((str, int, bool, NoneType))
"""Types of values that JSON has in one form."""


def trace_events(stream: Stream, traces: Sequence[TraceEvent]) -> list[Event]:
    """Return *traces* as events of the run, at their own times. A type that is reserved for runs becomes ``trace.TYPE``."""
    if not traces:
        return []
    run_id, (ids, now) = stream.run_id, stream.clock.stamps(len(traces))
    events = []
    for id_, trace in zip(ids, traces, strict=True):  # written flat: there are many of them
        type_, payload = trace.type, trace.payload
        if type_.startswith(RESERVED_AREAS):  # an exported trace may hold another run's events; they are not this run's
            type_ = f"trace.{type_}"
        if trace.extra:
            payload = {**payload, "extra": trace.extra}
        time, session_id, turn_id = trace.time or now, trace.session_id, trace.turn_id
        events.append(Event.of(id_, type_, time, run_id, payload, session_id, turn_id, None, None, "user_controlled"))
    return events


def content(due: Due, run_id: str) -> dict[str, Any]:
    """Return the payload of ``subject.read`` in the run *run_id*: the judged content, and the SHA-256 of its canonical JSON.

    :raises DataError: if the content is not JSON.
    """
    return content_and_text(due, run_id)[0]


def content_and_text(due: Due, run_id: str) -> tuple[dict[str, Any], bytes | None]:
    """Return the payload of :func:`content`, and the JSON text of the content; None if its canonical JSON may have another order of keys.

    :raises DataError: if the content is not JSON.
    """
    subject = due.subject
    context, input_, output, reference = subject.context, subject.input, subject.output, subject.reference
    judged = {"context": context, "input": input_, "output": output, "reference": reference}
    try:
        text = orjson.dumps(judged, option=orjson.OPT_SORT_KEYS)
    except TypeError as error:
        raise DataError(f"subject {subject.id!r} is not JSON: {error}") from error
    is_flat = type(input_) in _PLAIN and type(output) in _PLAIN and type(reference) in _PLAIN
    if is_flat and context:
        is_flat = _PLAIN.issuperset(map(type, context.values())) and [*context] == sorted(context)
    # the writer of JSON makes null of NaN, which no plain value is
    if not is_flat and text.count(b"null") > [*judged.values()].count(None):
        places = (not_finite(value, name) for name, value in judged.items())
        if fault := next(filter(None, places), None):
            raise DataError(f"subject {subject.id!r}: {fault}, which JSON does not have; write None, or a text")
    payload: dict[str, object] = {"digest": sha256(text).hexdigest(), "content": judged}
    if subject.columns and (named := _columns(subject)):
        payload["columns"] = named
    if subject.weight != 1:
        payload["weight"] = subject.weight
    if subject.place is not None:
        payload["place"] = subject.place
    if subject.kind == "session" and subject.parent_id is not None:
        payload["parent_id"] = subject.parent_id
    if type(due) is PlacedDue:
        payload["position"] = due.position
    if due.failure is not None:
        payload["failure"] = {"kind": due.failure.kind, "message": due.failure.message}
    if (ending := due.finish_reason or (_turn_ending(subject) if subject.events else None)) is not None:
        payload["finish_reason"] = ending
    if due.from_run is not None and due.from_run != run_id:
        payload["from_run"] = due.from_run
    return payload, text if is_flat else None


def _turn_ending(subject: Subject) -> str | None:
    """Return ``max_tokens`` or ``refusal`` if a turn in the subject's events ended so."""
    if subject.kind not in ("turn", "session"):
        return None
    ends = [event.payload for event in subject.events if event.type == "turn.completed"]
    if any(normalize_stop_reason(_text(end.get("stop_reason"))) == MAX_TOKENS for end in ends):
        return MAX_TOKENS
    return REFUSAL if any(end.get("refusal") is True for end in ends) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _columns(subject: Subject) -> dict[str, str | list[object]]:
    """Return the columns that became parts of *subject*, each with the name of its part.

    A column that is neither a part nor in the context has its value in a list.

    :raises DataError: if a value is not JSON.
    """
    parts = [(part, getattr(subject, part)) for part in PARTS]
    columns: dict[str, str | list[object]] = {}
    for name, value in subject.columns.items():
        part = next(
            (
                part
                for part, part_value in parts
                if part_value is value or (type(part_value) is type(value) and part_value == value)
            ),
            None,
        )
        if part is not None or name not in subject.context or subject.context[name] != value:
            columns[name] = [value] if part is None else part
    try:
        orjson.dumps(columns)
    except TypeError as error:
        raise DataError(f"the columns of subject {subject.id!r} are not JSON: {error}") from error
    return columns
