"""What a run's ledger has of its trace events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import attrs

from dicast import Event, Query, RunContext, TraceEvent

from .identity import OWN_PREFIX

_DIGITS = {digit: value for value, digit in enumerate("0123456789ABCDEFGHJKMNPQRSTVWXYZ")}


@attrs.define
class LedgerArchive:
    """Reads what the run has recorded; of what came *before* a row, where that is given."""

    run: RunContext
    before: int | None = None

    def events(self, session_id: str) -> Iterator[tuple[TraceEvent, float]]:
        """The events of a session with the times at which they arrived, in their order."""
        for entry in self.run.read(Query(run_id=self.run.run_id, session_id=session_id)):
            if self.before is not None and entry.seq >= self.before:
                return
            if is_trace(entry.event):
                yield trace_event(entry.event), arrived(entry.event)


def is_trace(event: Event) -> bool:
    """Whether a row is a trace event: a run's own that name a session are about a subject."""
    return event.session_id is not None and event.subject_kind is None


def arrived(event: Event) -> float:
    """When a row was made, in seconds since the epoch: its id says so."""
    return _milliseconds(event) / 1000


def trace_event(event: Event) -> TraceEvent:
    """The trace event as it was before it was recorded; one that had no time was given that of its recording."""
    payload, extra = event.payload, event.payload.get("extra")
    fields: Mapping[str, object] = extra if isinstance(extra, Mapping) else {}
    if fields:
        payload = {key: value for key, value in payload.items() if key != "extra"}
    time = None if event.time == _written(_milliseconds(event)) else event.time
    return TraceEvent(event.type.removeprefix(OWN_PREFIX), payload, time, event.session_id, event.turn_id, fields)


def _milliseconds(event: Event) -> int:
    """The first 48 bits of a ULID."""
    number = 0
    for digit in event.id[:10]:
        number = number * 32 + _DIGITS[digit]
    return number


def _written(milliseconds: int) -> str:
    second = datetime.fromtimestamp(milliseconds // 1000, UTC)
    return f"{second:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}Z"
