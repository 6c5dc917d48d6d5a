"""Lines that are whole conversations; a conversation may be written again with more turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from dicast import DataError, Failure, Problem, TraceEvent
from dicast.toolkit.assembly import FEEDBACK
from dicast.toolkit.sessions import Session
from dicast.toolkit.sub_agents import STARTED

from ..messages import Layout
from ..reading import Totals
from .lines import Line
from .names import Names
from .scanning import Scanning

_CONTEXT = "context"
_SESSION_END = "session.ended"
_LATE_TYPES = (STARTED, _SESSION_END, *FEEDBACK)
"""Events that a conversation's messages do not make. The session that started it may be known later than its messages."""


class Growth:
    """Finder of the events by which a session has grown since it was recorded.

    :param log: returns the recorded events of a session.
    :param hint: is added to the message about a session whose earlier events have changed.
    :param scanning: searches the sessions for secrets, and masks them, before they are compared.
    """

    def __init__(
        self, names: Names, log: Callable[[str], Sequence[TraceEvent]], scanning: Scanning, hint: str = ""
    ) -> None:
        self._names, self._log, self._scanning, self._hint = names, log, scanning, hint

    def events(self, session: Session | Failure, id: str, *, is_over: bool = True) -> Sequence[TraceEvent]:
        """Return the events that *session* adds to its recorded events, maybe none. Its end is included only if it *is_over*.

        :raises DataError: (without a place) if the session failed, or changes earlier events.
        """
        if isinstance(session, Failure):
            raise DataError(Problem(f"conversation {id!r} is not judged: {session.message}", path="error"))
        session = self._scanning.session(session)
        new_events = [event for event in session.log if event.type not in _LATE_TYPES]
        before = self._log(id)
        old_events = [event for event in before if event.type not in _LATE_TYPES]
        for new, old in zip(new_events, old_events, strict=False):
            if new != old:
                raise DataError(self._changed(id, old))
        starts = [event for event in session.log if event.type == STARTED and event not in before]
        fresh, end_event = [*starts, *new_events[len(old_events) :]], _end_event(session)
        last = next((event for event in reversed(before) if event.type == _SESSION_END), None)
        stale = len(new_events) < len(old_events)  # an older state of the session was read again
        return fresh if stale or not is_over or end_event == last else [*fresh, end_event]

    def name_call(self, turn_id: str, call_id: str) -> str:
        """Return the id of a tool call in the trace, unique among all sessions."""
        holder = self._names.holder("tool_cycle", call_id)
        is_own = holder is None or turn_id.startswith(f"{holder}/")
        return call_id if is_own else f"{turn_id}/{call_id}"

    def _changed(self, id: str, old: TraceEvent) -> Problem:
        where = "its first messages" if old.turn_id is None else f"turn {old.turn_id!r}"
        what = f"conversation {id!r} was recorded before, and {where} was different; a watch adds turns to a conversation and changes none"
        return Problem(what + self._hint, path="id", value=id)


class Transcripts:
    """Returns the new events of each line: a known conversation may have more turns now.

    :param log: returns the recorded events of a session.
    """

    def __init__(
        self, layout: Layout, names: Names, log: Callable[[str], Sequence[TraceEvent]], scanning: Scanning
    ) -> None:
        hint = "; where a line number can come twice, name conversations by the option id" if layout.id is None else ""
        self._layout, self._growth = layout, Growth(names, log, scanning, hint)
        self._reader = layout.reader(self._growth.name_call)

    @property
    def totals(self) -> Totals:
        """The counts of the records that this process has read."""
        return self._reader.totals

    def events(self, line: Line) -> Sequence[TraceEvent] | None:
        """Return the events that the line adds to its conversation, maybe none; None for a blank line.

        :raises DataError: (without a place) if it is no conversation, or changes earlier events.
        """
        record = line.record()
        if record is None:
            return None
        id = self._layout.session_id(line.number, record)
        return self._growth.events(self._reader.session(id, record), id)


def context_of(end_event: TraceEvent) -> Mapping[str, object]:
    """Return the other fields of a conversation's record, which are in the event of its end."""
    context = end_event.extra.get(_CONTEXT)
    return context if isinstance(context, Mapping) else {}


def _end_event(session: Session) -> TraceEvent:
    end = session.log[-1]
    return attrs.evolve(end, extra={_CONTEXT: session.context}) if session.context else end
