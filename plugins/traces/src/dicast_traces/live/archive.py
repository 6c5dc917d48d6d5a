"""The trace events in a run's ledger."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from dicast import Event, Query, RunContext, TraceEvent

from ..recording import recorded_at, trace_event


@attrs.define
class LedgerArchive:
    """Reader of the events that the run has recorded; with *before*, only of the events before this row."""

    run: RunContext
    before: int | None = None

    def events(self, session_id: str) -> Iterator[tuple[TraceEvent, float]]:
        """Yield the events of a session with their times of arrival, in their order."""
        for entry in self.run.read(Query(run_id=self.run.run_id, session_id=session_id)):
            if self.before is not None and entry.seq >= self.before:
                return
            if is_trace(entry.event):
                yield trace_event(entry.event), recorded_at(entry.event)


def is_trace(event: Event) -> bool:
    """Return True if a row is a trace event. The run's own events that name a session are about a subject."""
    return event.session_id is not None and event.subject_kind is None
