"""Sessions of sub-agents, and their places in the sessions that started them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Protocol

import attrs

STARTED = "session.started"
"""The type of the first event of a sub-agent's session: ``parent_id`` is the session that started it, ``parent_tool_use_id`` the tool call, if known."""


_END = "turn.completed"


class Recorded(Protocol):
    """An event of a trace, in a ledger or as its source has it."""

    @property
    def type(self) -> str:
        """The event's type."""

    @property
    def time(self) -> str | None:
        """The event's time, None if its source has none."""

    @property
    def session_id(self) -> str | None:
        """The event's session."""

    @property
    def turn_id(self) -> str | None:
        """The event's turn."""

    @property
    def payload(self) -> Mapping[str, Any]:
        """The event's members."""


@attrs.frozen
class AgentPlace:
    """The place of a sub-agent's session in the session that started it: after the tool *call*, else at the end of *turn*, else at the end."""

    session_id: str
    call: str | None = None
    turn: str | None = None


@attrs.define
class SubAgents:
    """The sub-agents of one run. *parents* maps the session of each to the session that started it; no session is part of itself."""

    parents: dict[str, str] = attrs.field(factory=dict)
    _starts: dict[str, Recorded] = attrs.field(factory=dict)
    _children: dict[str, list[str]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, events: Iterable[Recorded]) -> SubAgents:
        """Return the sub-agents that the events :data:`STARTED` in *events* name; the last event of a session counts."""
        result = cls()
        for event in events:
            if event.type == STARTED and event.session_id is not None and "parent_id" in event.payload:
                result._starts[event.session_id] = event
        for session, event in result._starts.items():
            parent = str(event.payload["parent_id"])
            if session not in result._above(parent):
                result.parents[session] = parent
                result._children.setdefault(parent, []).append(session)
        return result

    def inside(self, session_id: str) -> Iterator[str]:
        """Yield the sessions that *session_id* started, and the sessions that these started."""
        waiting = [session_id]
        while waiting:
            children = self._children.get(waiting.pop(), ())
            yield from children
            waiting += children

    def places(self, session_id: str, events: Sequence[Recorded]) -> list[AgentPlace]:
        """Return the places of the sub-agents that *session_id* started, from the *events* of that session.

        A sub-agent is placed by the tool call that it names, else by the call whose end names it, else by time.
        """
        children = self._children.get(session_id, ())
        if not children:
            return []
        calls = sorted({str(event.payload["tool_use_id"]) for event in events if "tool_use_id" in event.payload})
        named = {call.rpartition("/")[2]: call for call in reversed(calls)}  # a call's id may start with its turn's id
        named |= {call: call for call in calls}
        started = {
            str(event.payload["started_session"]): str(event.payload.get("tool_use_id"))
            for event in events
            if "started_session" in event.payload
        }
        turns = _TurnTimes(events)
        places = []
        for child in children:
            name = self._starts[child].payload.get("parent_tool_use_id")
            call = started.get(child) if name is None else named.get(str(name))
            turn = None if call is not None else turns.at(self._starts[child].time)
            places.append(AgentPlace(child, call, turn))
        return places

    def places_in(self, kind: str, id: str, session_id: str, events: Sequence[Recorded]) -> list[AgentPlace]:
        """Return the places of :meth:`places` that are in the tool cycle, the turn or the session *id*."""
        places = self.places(session_id, events)
        if kind == "tool_cycle":
            return [place for place in places if place.call == id]
        if kind == "turn":
            calls = {
                str(event.payload["tool_use_id"])
                for event in events
                if event.turn_id == id and "tool_use_id" in event.payload
            }
            return [place for place in places if place.call in calls or place.turn == id]
        return places

    def _above(self, session_id: str) -> Iterator[str]:
        """Yield *session_id* and the sessions that it is part of, the innermost first."""
        current: str | None = session_id
        while current is not None:
            yield current
            current = self.parents.get(current)


class _TurnTimes:
    """Times of the turns in the events of a session."""

    def __init__(self, events: Sequence[Recorded]) -> None:
        self._events = events

    @cached_property
    def _times(self) -> tuple[dict[str, datetime | None], dict[str, datetime]]:
        """The start of each turn, and its last time. A turn with a single event has no known start: its user's message is not an event."""
        begins: dict[str, datetime | None] = {}
        ends: dict[str, datetime] = {}
        for event in self._events:
            if event.turn_id is not None:
                moment = _moment(event.time)
                begins.setdefault(event.turn_id, None if event.type == _END else moment)
                if moment is not None:
                    ends[event.turn_id] = max(moment, ends.get(event.turn_id, moment))
        return begins, ends

    def at(self, time: str | None) -> str | None:
        """Return the turn during which *time* was, else the turn before it; the first turn without a time, None without turns."""
        begins, ends = self._times
        at, before = _moment(time), next(iter(begins), None)
        if at is None:
            return before
        for turn, begin in begins.items():
            if begin is not None and begin > at:
                return before
            if turn in ends and ends[turn] >= at:
                return turn
            before = turn
        return before


def _moment(time: str | None) -> datetime | None:
    """Return the moment of a recorded *time*, None without a time; the file of another tool may have a text that is no ISO 8601 time."""
    try:
        moment = datetime.fromisoformat(time or "")
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
