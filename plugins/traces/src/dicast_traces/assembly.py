"""One session put together from its events, in the order in which they come."""

from __future__ import annotations

from collections.abc import Iterable

from dicast import TraceEvent

from .sessions import Session, Turn

FEEDBACK = ("feedback.explicit", "feedback.implicit")


class Assembly:
    """A session as far as it is known: *events* are all of them, *ends* those that end a tool call, by the call's id."""

    def __init__(self, id: str, events: Iterable[TraceEvent] = ()) -> None:
        self.id = id
        self.events: list[TraceEvent] = []
        self.ends: dict[object, TraceEvent] = {}
        self._turns: dict[str, list[TraceEvent]] = {}
        self._begun: dict[str, int] = {}  # each turn with the number of those before it
        self._after: dict[str, list[int]] = {}
        self._completed: set[str] = set()
        for event in events:
            self.add(event)

    def add(self, event: TraceEvent) -> None:
        """Take the next event."""
        type_, turn_id = event.type, event.turn_id
        self.events.append(event)
        if turn_id is not None and turn_id not in self._begun:
            self._begun[turn_id] = len(self._begun)
        if type_ in FEEDBACK:
            turn_id = turn_of(event)
        if turn_id is not None:
            self._turns.setdefault(turn_id, []).append(event)
        match type_:
            case "turn.completed":
                self._completed.add(str(turn_id))
            case "tool.completed" | "tool.failed":
                self.ends[event.payload.get("tool_use_id")] = event
            case "feedback.explicit" | "feedback.implicit" if turn_id is not None:
                latest = len(self._begun) - 1
                self._after.setdefault(turn_id, []).append(latest - self._begun.get(turn_id, latest))

    def is_completed(self, turn_id: str) -> bool:
        """Whether the turn has ended."""
        return turn_id in self._completed

    def later(self, turn_id: str) -> int:
        """How many turns of the session began after this one, which has begun."""
        return len(self._begun) - 1 - self._begun[turn_id]

    def events_of(self, turn_id: str) -> tuple[TraceEvent, ...]:
        """The events of a turn, as far as they are known."""
        return tuple(self._turns.get(turn_id, ()))

    def turn(self, turn_id: str) -> Turn:
        """A completed turn, as far as it is known."""
        return Turn(turn_id, tuple(self._turns[turn_id]), tuple(self._after.get(turn_id, ())))

    def completed(self) -> list[str]:
        """The ids of the turns that have ended, in the order in which they began or were first spoken of."""
        return [turn_id for turn_id in self._turns if turn_id in self._completed]

    def session(self) -> Session:
        """The session, as far as it is known."""
        return Session(self.id, [self.turn(turn_id) for turn_id in self.completed()], tuple(self.events), {})


def turn_of(event: TraceEvent) -> str | None:
    """The turn that *event* belongs to: feedback belongs to the turn it is about, not to the one it was given in."""
    if event.type not in FEEDBACK:
        return event.turn_id
    about = event.payload.get("subject_turn_id")
    if about is not None:
        return str(about)
    return None if event.payload.get("scope") == "session" else event.turn_id
