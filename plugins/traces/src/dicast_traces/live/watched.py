"""The state of a watched session, and the decisions about it."""

from __future__ import annotations

import attrs

from dicast import Subject, TraceEvent
from dicast.toolkit.assembly import Assembly
from dicast.toolkit.sessions import cycle_subject

from ..calls import Calls

BUS, FEEDBACK_ARRIVED = "bus", "feedback_arrived"
"""Triggers of a judgment: the subject is due for the first time, or it is judged again because of feedback."""


@attrs.frozen
class Decision:
    """The decision to judge a subject now, with its *trigger*.

    A tool cycle is due by itself, as ``call``. A turn that is due for the first time comes with its calls that were
    not judged because they have not ended. If events arrived after a turn was judged, all its calls are due, as ``tool_cycle`` with the *id* of their turn,
    before the turn is judged again.
    """

    kind: str
    session_id: str
    id: str
    trigger: str


@attrs.define(eq=False)
class Watched:
    """A session in memory: its events, its judged subjects, and the subjects to judge again.

    *progress* is the time of its last progress, *arrived* of its last event, *end_time* of its end, and *check* of the next
    check. *ended_calls* are the tool calls to judge; *judged_counts* maps each judged call to the number of calls that
    its turn had then. *waiting* are the completed turns that were not judged yet. *late* are judged turns with a later tool call or
    end of a call. *due* is the trigger by which the session will be judged; *open* counts its subjects that are being judged.
    """

    assembly: Assembly
    calls: Calls = attrs.field(factory=Calls)
    ended_calls: dict[str, None] = attrs.field(factory=dict)
    judged_counts: dict[str, int] = attrs.field(factory=dict)
    progress: float = 0.0
    arrived: float = 0.0
    end_time: float | None = None
    check: float | None = None
    seen: set[bytes] = attrs.field(factory=set)
    waiting: dict[str, None] = attrs.field(factory=dict)
    again: dict[str, None] = attrs.field(factory=dict)
    judged: set[str] = attrs.field(factory=set)
    late: set[str] = attrs.field(factory=set)
    due: str | None = None
    is_judged: bool = False
    open: int = 0

    @property
    def is_settled(self) -> bool:
        """True if no subject of the session waits or is being judged."""
        waits = self.waiting or self.again or self.ended_calls or self.open
        return not (waits or (self.due and self.end_time is not None))

    def note_call(self, event: TraceEvent) -> None:
        """Add the start or the end of a tool call. An ended call is due; a call of a turn that was judged is due only after feedback."""
        if event.type == "tool.called":
            self.calls.add(event, len(self.assembly.log) - 1)
        id = str(event.payload.get("tool_use_id"))
        if event.turn_id in self.judged:
            self.late.add(str(event.turn_id))
        elif id in self.calls and event.payload.get("tool_use_id") in self.assembly.ends:
            self.ended_calls[id] = None

    def learn(self, turn_id: str) -> None:
        """At the end of a turn, mark its judged calls that have new events to be judged again."""
        self.ended_calls |= dict.fromkeys(self.calls.learned(turn_id, self.judged_counts))

    def take_call(self, id: str) -> Subject:
        """Return the tool cycle of the call *id*, and mark the call as judged."""
        self.ended_calls.pop(id, None)
        self.judged_counts[id] = self.calls.count(id)
        calls = self.calls
        return cycle_subject(
            self.assembly.outline(), calls.turn(id), calls.events(id, self.assembly.ends), calls.place(id)
        )
