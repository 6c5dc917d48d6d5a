"""Counts of a trace: events by unknown type, and events that no judged subject has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import attrs

from dicast import ReadCounts, TraceEvent
from dicast.toolkit.assembly import FEEDBACK, Assembly, turn_of

from .payloads import TYPES

_ENDS = ("tool.completed", "tool.failed")


@attrs.define
class EventCounts:
    """Counts of the events of a trace, and of its sessions once they are read.

    *contents* has the numbers of sessions and turns, of turns without an end (``open_turns``), of results without a call
    (``unmatched_results``), of calls without a result, and of feedback about turns that the trace does not have.
    """

    events: int = 0
    unknown_types: Counter[str] = attrs.field(factory=Counter)
    contents: Counter[str] = attrs.field(factory=Counter)

    def note(self, event: TraceEvent) -> None:
        """Count an event."""
        self.events += 1
        if event.type not in TYPES:
            self.unknown_types[event.type] += 1

    def note_session(self, session: Assembly) -> None:
        """Count the contents of a complete session."""
        turns = {event.turn_id for event in session.log if event.turn_id is not None and event.type not in FEEDBACK}
        calls = {str(event.payload.get("tool_use_id")) for event in session.events if event.type == "tool.called"}
        ends = [str(event.payload.get("tool_use_id")) for event in session.events if event.type in _ENDS]
        about = [turn_of(event) for event in session.events if event.type in FEEDBACK]
        completed = len(session.completed())
        self.contents.update(
            sessions=1,
            turns=completed,
            open_turns=len(turns) - completed,
            calls=len(calls),
            results=len(ends),
            unmatched_results=sum(id_ not in calls for id_ in ends),
            unmatched_calls=len(calls.difference(ends)),
            feedback_without_turn=sum(turn is not None and turn not in turns for turn in about),
        )

    def read_counts(self) -> ReadCounts:
        """Return the counts as a run's document has them; a record is an event."""
        details: dict[str, Mapping[str, int]] = {"contents": self.contents}
        if self.unknown_types:
            details["unknown_types"] = self.unknown_types
        return ReadCounts(self.events, details=details, notes=tuple(self._notes()))

    def _notes(self) -> Iterator[str]:
        if self.unknown_types:
            yield "unknown event types: " + ", ".join(
                f"{count:,} {name}" for name, count in sorted(self.unknown_types.items())
            )
        if count := self.contents["open_turns"]:
            yield f"{count:,} turn{'s' * (count != 1)} without turn.completed"
        if count := self.contents["unmatched_results"]:
            yield f"{count:,} tool result{'s' * (count != 1)} without a call"
        if count := self.contents["feedback_without_turn"]:
            yield f"{count:,} feedback event{'s' * (count != 1)} about no turn of the trace"
