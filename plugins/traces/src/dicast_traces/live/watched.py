"""A session while it is watched, and what is decided of it."""

from __future__ import annotations

import attrs

from dicast import Subject, TraceEvent
from dicast.toolkit.assembly import Assembly
from dicast.toolkit.sessions import Session, cycle_subject

from ..calls import Calls

BUS, FEEDBACK_ARRIVED = "bus", "feedback_arrived"
"""Why a subject is judged: because its time has come, or again, because of what its user said."""


@attrs.frozen
class Decision:
    """That a subject is to be judged now, and by what *trigger*.

    A tool cycle is due by itself, as ``call``. A turn that is due for the first time comes with those of its calls that were
    not judged, because they have not ended. All of them are due, as ``tool_cycle`` with the *id* of their turn, before the
    turn is judged again, where some of it came after it was judged.
    """

    kind: str
    session_id: str
    id: str
    trigger: str


@attrs.define(eq=False)
class Watched:
    """A session in memory: what is known of it, what of it was judged, and what is to be judged again.

    *progress* is when it last went on, *arrived* when its last event came, *ended* when its end did, and *check* when it has
    to be looked at. *ended_calls* are the tool calls that are to be judged, *known* says of those that were how many calls
    their turn had then. *waiting* are the completed turns that were not judged yet; *late* are judged ones that had a tool call or
    the end of one since; *due* is by what trigger it will itself be judged; *open* counts its subjects that are being judged.
    """

    assembly: Assembly
    calls: Calls = attrs.field(factory=Calls)
    ended_calls: dict[str, None] = attrs.field(factory=dict)
    known: dict[str, int] = attrs.field(factory=dict)
    progress: float = 0.0
    arrived: float = 0.0
    ended: float | None = None
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
        """Whether nothing of it waits to be judged, or is being judged."""
        waits = self.waiting or self.again or self.ended_calls or self.open
        return not (waits or (self.due and self.ended is not None))

    def note_call(self, event: TraceEvent) -> None:
        """Take a tool call or the end of one, which makes it due once it has ended; that of a judged turn waits for feedback."""
        if event.type == "tool.called":
            self.calls.add(event, len(self.assembly.log) - 1)
        id = str(event.payload.get("tool_use_id"))
        if event.turn_id in self.judged:
            self.late.add(str(event.turn_id))
        elif id in self.calls and event.payload.get("tool_use_id") in self.assembly.ends:
            self.ended_calls[id] = None

    def learn(self, turn_id: str) -> None:
        """Judge again, at the end of a turn, the calls of which it has said more."""
        self.ended_calls |= dict.fromkeys(self.calls.learned(turn_id, self.known))

    def take_call(self, id: str) -> Subject:
        """The tool cycle of the call *id*, which is judged now."""
        self.ended_calls.pop(id, None)
        self.known[id] = self.calls.count(id)
        session, calls = Session(self.assembly.id, (), (), self.assembly.context, self.assembly.log), self.calls
        return cycle_subject(session, calls.turn(id), calls.events(id, self.assembly.ends), calls.place(id))
