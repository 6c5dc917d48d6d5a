"""A trace event and the row of a ledger that it becomes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from dicast import RESERVED_AREAS, Event, TraceEvent

_DIGITS = {digit: value for value, digit in enumerate("0123456789ABCDEFGHJKMNPQRSTVWXYZ")}
_PREFIX = "trace."
_PREFIXED_TYPES = tuple(f"{_PREFIX}{area}" for area in RESERVED_AREAS)
"""Prefixes, in a ledger, of types that are otherwise equal to types of a run's own events."""


def trace_event(event: Event) -> TraceEvent:
    """Return the trace event before its recording. An event without a time has the time of its recording."""
    payload, extra = event.payload, event.payload.get("extra")
    fields: Mapping[str, object] = extra if isinstance(extra, Mapping) else {}
    if fields:
        payload = {key: value for key, value in payload.items() if key != "extra"}
    time = None if event.time == _written(_milliseconds(event)) else event.time
    return TraceEvent(own_type(event.type), payload, time, event.session_id, event.turn_id, fields)


def own_type(type: str) -> str:
    """Return the *type* of a trace event without the prefix that a ledger adds if it is also the type of a run's event."""
    return type.removeprefix(_PREFIX) if type.startswith(_PREFIXED_TYPES) else type


def recorded_at(event: Event) -> float:
    """Return the time of a row in seconds since the epoch, from its id."""
    return _milliseconds(event) / 1000


def _milliseconds(event: Event) -> int:
    """Return the first 48 bits of a ULID."""
    number = 0
    for digit in event.id[:10]:
        number = number * 32 + _DIGITS[digit]
    return number


def _written(milliseconds: int) -> str:
    second = datetime.fromtimestamp(milliseconds // 1000, UTC)
    return f"{second:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}Z"
