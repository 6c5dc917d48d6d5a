"""The reading of one trace event, and the known fields of payloads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from dicast import DataError, Problem, TraceEvent, identifier

_TEXTS = ("user_prompt_text", "final_response_text", "assistant_response_text")

Check = Callable[[Any], str | None]
"""Function that returns the expected form of a value, or None if the value has it."""


def read_event(record: dict[str, Any], *, calls_named: bool) -> TraceEvent:
    """Return the event of a line; *calls_named* as in :func:`check_event`.

    :raises DataError: (without a place) with all its faults.
    """
    return _event(record, *check_event(record, calls_named=calls_named))


def check_event(record: Mapping[str, Any], *, calls_named: bool) -> tuple[str, str | None]:
    """Return the ids of the session and the turn of a line. *calls_named* requires a ``tool_use_id`` in every ``tool.called``.

    :raises DataError: (without a place) with all its faults.
    """
    session_id, turn_id = record.get("session_id"), record.get("turn_id")
    named = type(session_id) is str and session_id and (turn_id is None or (type(turn_id) is str and turn_id))
    # A fast path for events without a fault whose ids are texts: nearly all events.
    if not named or _faults(record, calls_named=calls_named):
        return _checked(record, calls_named=calls_named)
    return str(session_id), turn_id


def checked_event(record: dict[str, Any]) -> TraceEvent:
    """Return the event of a line that has passed :func:`check_event`. The fields of the event are removed from *record*."""
    session_id, turn_id = record["session_id"], record.get("turn_id")
    if type(session_id) is not str:
        session_id = identifier(session_id, "session_id")
    if turn_id is not None and type(turn_id) is not str:
        turn_id = identifier(turn_id, "turn_id")
    return _event(record, session_id, turn_id)


def _event(record: dict[str, Any], session_id: str, turn_id: str | None) -> TraceEvent:
    take = record.pop
    take("session_id")
    take("turn_id", None)
    type_, payload, time = take("type"), take("payload"), take("time", None)
    return TraceEvent.of(
        type_, payload, time, session_id, turn_id, record or {}
    )  # the remaining fields are unknown fields


def _checked(record: Mapping[str, Any], *, calls_named: bool) -> tuple[str, str | None]:
    """Return the ids of the session and the turn.

    :raises DataError: with all faults of *record*.
    """
    problems = [
        Problem(f"{path} must be {expected}, not {value!r}", path=path, value=value)
        for path, value, expected in _faults(record, calls_named=calls_named)
    ]
    names: list[str | None] = []
    for field in ("session_id", "turn_id"):
        try:
            names.append(identifier(value, field) if (value := record.get(field)) is not None else None)
        except DataError as error:
            problems += error.problems
    if problems:
        raise DataError(problems)
    session_id, turn_id = names
    return str(session_id), turn_id


def _faults(record: Mapping[str, Any], *, calls_named: bool) -> list[tuple[str, object, str]]:
    """Return the path, the value and the expected form of every wrong part of *record*."""
    faults: list[tuple[str, object, str]] = []
    type_, payload, time = record.get("type"), record.get("payload"), record.get("time")
    if not isinstance(type_, str) or not type_:
        faults.append(("type", type_, "an event's type, a string"))
        type_ = ""
    if time is not None and not _is_time(time):
        faults.append(("time", time, "an ISO 8601 time"))
    if record.get("session_id") is None:
        faults.append(("session_id", None, "an id"))
    if type_ == "turn.completed" and record.get("turn_id") is None:
        faults.append(("turn_id", None, "an id"))
    if not isinstance(payload, dict):
        faults.append(("payload", payload, "an object"))
        return faults
    if calls_named and type_ == "tool.called" and payload.get("tool_use_id") is None:
        faults.append(("payload.tool_use_id", None, "an id"))
    for name, check in _KNOWN_FIELDS.get(type_, ()):
        value = payload.get(name)
        if value is not None and (expected := check(value)):
            faults.append((f"payload.{name}", value, expected))
    return faults


def _is_time(value: object) -> bool:
    try:
        datetime.fromisoformat(value)  # type: ignore[arg-type]  # a value that is not a string raises TypeError
    except (TypeError, ValueError):
        return False
    return True


def _one_of(*names: str) -> Check:
    return lambda value: None if value in names else " or ".join(names)


def _is(kind: type, what: str) -> Check:
    return lambda value: None if isinstance(value, kind) else what


def _id(value: object) -> str | None:
    return None if isinstance(value, str | int) and not isinstance(value, bool) else "a string or a whole number"


def _count(value: object) -> str | None:
    return (
        None if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else "a whole number, 0 or more"
    )


def _texts(value: object) -> str | None:
    good = isinstance(value, dict) and all(isinstance(value.get(name), str | None) for name in _TEXTS)
    return None if good else f"an object whose {', '.join(_TEXTS)} are strings"


_FIELDS_OF: Mapping[str, Mapping[str, Check]] = {
    "turn.completed": {"stop_reason": _is(str, "a string"), "tool_call_count": _count, "signals_extra": _texts},
    "message.sent": {
        "role": _is(str, "a string"),
        "text": _is(str, "a string"),
        "parts": _is(list, "a list"),
        "refusal": _is(bool, "true or false"),
    },
    "tool.called": {"tool_use_id": _id},
    "tool.completed": {"tool_use_id": _id, "success": _is(bool, "true or false")},
    "tool.failed": {"tool_use_id": _id},
    "llm.call_completed": {"stop_reason": _is(str, "a string")},
    "session.started": {"parent_id": _id, "parent_tool_use_id": _id},
    "session.ended": {"disposition": _one_of("completed", "abandoned", "error")},
    "feedback.explicit": {
        "scope": _one_of("turn", "session"),
        "subject_turn_id": _id,
        "rating": _one_of("thumbs_up", "thumbs_down"),
    },
    "feedback.implicit": {"type": _one_of("retry", "manual_swap", "edit_followup"), "subject_turn_id": _id},
}
"""The checks of the fields of known events. Without them a wrong value could count as a good sign."""

TYPES = frozenset((*_FIELDS_OF, "llm.call_failed", "route.decided"))
"""The types of events that dicast knows."""

_KNOWN_FIELDS = {type_: tuple(fields.items()) for type_, fields in _FIELDS_OF.items()}
