"""A trace event and the row of a ledger that it becomes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from dicast import RESERVED_AREAS, Event, TraceEvent

_DIGITS = {digit: value for value, digit in enumerate("0123456789ABCDEFGHJKMNPQRSTVWXYZ")}
_TOLD_APART = "trace."
_OWN_TYPES = tuple(f"{_TOLD_APART}{area}" for area in RESERVED_AREAS)
"""How types begin in a ledger that would else be taken for those of a run's own events."""


def trace_event(event: Event) -> TraceEvent:
    """The trace event as it was before it was recorded; one that had no time was given that of its recording."""
    payload, extra = event.payload, event.payload.get("extra")
    fields: Mapping[str, object] = extra if isinstance(extra, Mapping) else {}
    if fields:
        payload = {key: value for key, value in payload.items() if key != "extra"}
    time = None if event.time == _written(_milliseconds(event)) else event.time
    return TraceEvent(own_type(event.type), payload, time, event.session_id, event.turn_id, fields)


def own_type(type: str) -> str:
    """The *type* of a trace event, without what a ledger puts before one that is called like an event of a run."""
    return type.removeprefix(_TOLD_APART) if type.startswith(_OWN_TYPES) else type


def recorded_at(event: Event) -> float:
    """When a row was made, in seconds since the epoch: its id says so."""
    return _milliseconds(event) / 1000


def _milliseconds(event: Event) -> int:
    """The first 48 bits of a ULID."""
    number = 0
    for digit in event.id[:10]:
        number = number * 32 + _DIGITS[digit]
    return number


def _written(milliseconds: int) -> str:
    second = datetime.fromtimestamp(milliseconds // 1000, UTC)
    return f"{second:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}Z"
