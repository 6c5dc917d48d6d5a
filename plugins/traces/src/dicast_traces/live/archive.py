"""What a run's ledger has of its trace events."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from dicast import Event, Query, RunContext, TraceEvent

from ..recording import recorded_at, trace_event


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
                yield trace_event(entry.event), recorded_at(entry.event)


def is_trace(event: Event) -> bool:
    """Whether a row is a trace event: a run's own that name a session are about a subject."""
    return event.session_id is not None and event.subject_kind is None
