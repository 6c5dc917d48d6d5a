"""A session that is put together from its events, in the order of their arrival."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dicast import TraceEvent

from . import sub_agents
from .sessions import MESSAGE, Session, Turn

FEEDBACK = ("feedback.explicit", "feedback.implicit")


class Assembly:
    """A session that may still grow. *log* has all events, *events* all but the messages, *ends* the ends of tool calls by the call's id.

    *context* has the other fields of its record, *parent_id* is the id of the session that started it, *place* is where its data come from.
    """

    def __init__(self, id: str, events: Iterable[TraceEvent] = ()) -> None:
        self.id = id
        self.context: Mapping[str, object] = {}
        self.parent_id: str | None = None
        self.place: str | None = None
        self.log: list[TraceEvent] = []
        self.events: list[TraceEvent] = []
        self.ends: dict[object, TraceEvent] = {}
        self._turns: dict[str, list[TraceEvent]] = {}
        self._started: dict[str, int] = {}  # by turn: the number of turns before it
        self._begins: dict[str, int] = {}  # by turn: the number of events before it
        self._ends: dict[str, int] = {}  # by completed turn: the number of events up to its end
        self._after: dict[str, list[int]] = {}  # by turn: for each feedback, the number of turns between them
        for event in events:
            self.add(event)

    def add(self, event: TraceEvent) -> None:
        """Add the next event."""
        type_, turn_id = event.type, event.turn_id
        if turn_id is not None and turn_id not in self._started:
            self._started[turn_id], self._begins[turn_id] = len(self._started), len(self.log)
        self.log.append(event)
        if type_ == MESSAGE:
            return
        self.events.append(event)
        if type_ in FEEDBACK:
            turn_id = turn_of(event)
        if turn_id is not None:
            self._turns.setdefault(turn_id, []).append(event)
        match type_:
            case sub_agents.STARTED if (parent := event.payload.get("parent_id")) is not None:
                self.parent_id = str(parent)
            case "turn.completed":
                self._ends[str(turn_id)] = len(self.log)
            case "tool.completed" | "tool.failed":
                self.ends[event.payload.get("tool_use_id")] = event
            case "feedback.explicit" | "feedback.implicit" if turn_id is not None:
                latest = len(self._started) - 1
                self._after.setdefault(turn_id, []).append(latest - self._started.get(turn_id, latest))

    def is_completed(self, turn_id: str) -> bool:
        """Return whether the turn has ended."""
        return turn_id in self._ends

    def later(self, turn_id: str) -> int:
        """Return the number of turns that started after the turn *turn_id*.

        :raises KeyError: if the turn has not started.
        """
        return len(self._started) - 1 - self._started[turn_id]

    def events_of(self, turn_id: str) -> tuple[TraceEvent, ...]:
        """Return the events of a turn so far."""
        return tuple(self._turns.get(turn_id, ()))

    def turn(self, turn_id: str) -> Turn:
        """Return a completed turn with its events so far."""
        events, after = tuple(self._turns[turn_id]), tuple(self._after.get(turn_id, ()))
        return Turn(turn_id, events, after, self.begins(turn_id), self.ends_at(turn_id))

    def begins(self, turn_id: str) -> int:
        """Return the number of events of the session before the turn."""
        return self._begins.get(turn_id, 0)

    def ends_at(self, turn_id: str) -> int:
        """Return the number of events of the session up to the end of the turn."""
        return self._ends.get(turn_id, 0)

    def completed(self) -> list[str]:
        """Return the ids of the ended turns, in the order in which they started or were first mentioned."""
        return [turn_id for turn_id in self._turns if turn_id in self._ends]

    def session(self) -> Session:
        """Return the session so far."""
        turns = [self.turn(turn_id) for turn_id in self.completed()]
        parts = self.id, turns, tuple(self.events), self.context, tuple(self.log), self.parent_id
        return Session(*parts, place=self.place)

    def outline(self) -> Session:
        """Return the session so far without its turns and events, but with its log."""
        return Session(self.id, (), (), self.context, self.log, place=self.place)


def turn_of(event: TraceEvent) -> str | None:
    """Return the id of the turn of *event*, None if it has none. Feedback belongs to the turn that it is about, not to the turn in which it was sent."""
    if event.type not in FEEDBACK:
        return event.turn_id
    about = event.payload.get("subject_turn_id")
    if about is not None:
        return str(about)
    return None if event.payload.get("scope") == "session" else event.turn_id
