"""The tool calls of a session in their order: their ends, and later events about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dicast import TraceEvent
from dicast.toolkit.sessions import FOLLOWING, cycle_events

Ends = Mapping[object, TraceEvent]
"""The ends of tool calls, by the id of the call."""


class Calls:
    """The known tool calls of one session, by turn."""

    def __init__(self) -> None:
        self._of_turn: dict[str, list[TraceEvent]] = {}
        self._places: dict[str, tuple[str, int]] = {}
        self._in_log: dict[str, int] = {}

    def add(self, event: TraceEvent, place: int) -> None:
        """Add a ``tool.called`` from its *place* in the log. A call without an id or a turn makes no tool cycle."""
        use = event.payload.get("tool_use_id")
        if use is not None and event.turn_id is not None:
            calls = self._of_turn.setdefault(event.turn_id, [])
            self._places[str(use)] = event.turn_id, len(calls)
            self._in_log[str(use)] = place
            calls.append(event)

    def __contains__(self, id: str) -> bool:
        return id in self._places

    def of_turn(self, turn_id: str) -> list[str]:
        """Return the ids of a turn's calls, in their order."""
        return [str(call.payload["tool_use_id"]) for call in self._of_turn.get(turn_id, ())]

    def count(self, id: str) -> int:
        """Return the number of calls in the turn of the call *id*."""
        return len(self._of_turn[self._places[id][0]])

    def place(self, id: str) -> int:
        """Return the place of the call *id* in the session's log."""
        return self._in_log[id]

    def turn(self, id: str) -> str:
        """Return the turn of the call *id*."""
        return self._places[id][0]

    def events(self, id: str, ends: Ends) -> tuple[TraceEvent, ...]:
        """Return the call *id*, its end if it has one, and the later calls of its turn."""
        turn_id, number = self._places[id]
        return cycle_events(self._of_turn[turn_id], number, ends)

    def learned(self, turn_id: str, judged_counts: Mapping[str, int]) -> Iterator[str]:
        """Yield the calls of a turn whose tool the agent has called again since they were judged.

        *judged_counts* maps each judged call to the number of calls that its turn had then.
        """
        calls = self._of_turn.get(turn_id, [])
        for number, id in enumerate(self.of_turn(turn_id)):
            first = max(number + 1, judged_counts.get(id, len(calls)))
            if any(_same_tool(calls[number], later) for later in calls[first : number + 1 + FOLLOWING]):
                yield id


def _same_tool(call: TraceEvent, other: TraceEvent) -> bool:
    return call.payload.get("tool_name") == other.payload.get("tool_name")
