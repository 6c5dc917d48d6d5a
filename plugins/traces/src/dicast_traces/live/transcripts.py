"""Lines that are whole conversations, which may be written again when they have gone on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from dicast import DataError, Failure, Problem, TraceEvent
from dicast.toolkit.assembly import FEEDBACK

from ..messages import Layout
from ..reading import Totals
from .lines import Line
from .names import Names

_CONTEXT = "context"
_SESSION_END = "session.ended"
_LATE_TYPES = (_SESSION_END, *FEEDBACK)
"""Events that a conversation's messages do not make."""


class Transcripts:
    """Makes of each line the events that are new: a conversation that came before may have more turns now.

    :param log: gives all that is known of a session.
    """

    def __init__(self, layout: Layout, names: Names, log: Callable[[str], Sequence[TraceEvent]]) -> None:
        self._layout, self._names, self._log = layout, names, log
        self._reader = layout.reader(self._name_call)

    @property
    def totals(self) -> Totals:
        """The counts of the records that this process has read."""
        return self._reader.totals

    def events(self, line: Line) -> Sequence[TraceEvent] | None:
        """Return the events that the line adds to its conversation, which may be none; None for a blank line.

        :raises DataError: (without a place) if it is no conversation, or changes earlier events.
        """
        record = line.record()
        if record is None:
            return None
        id = self._layout.session_id(line.number, record)
        session = self._reader.session(id, record)
        if isinstance(session, Failure):
            raise DataError(Problem(f"conversation {id!r} is not judged: {session.message}", path="error"))
        new_events = [event for event in session.log if event.type not in _LATE_TYPES]
        before = self._log(id)
        old_events = [event for event in before if event.type not in _LATE_TYPES]
        for new, old in zip(new_events, old_events, strict=False):
            if new != old:
                raise DataError(self._changed(id, old))
        fresh, end_event = new_events[len(old_events) :], _end_event(session.log[-1], session.context)
        last = next((event for event in reversed(before) if event.type == _SESSION_END), None)
        stale = len(new_events) < len(old_events)  # an earlier state of it, read again
        return fresh if stale or end_event == last else [*fresh, end_event]

    def _name_call(self, turn_id: str, call_id: str) -> str:
        holder = self._names.holder("tool_cycle", call_id)
        is_own = holder is None or turn_id.startswith(f"{holder}/")
        return call_id if is_own else f"{turn_id}/{call_id}"

    def _changed(self, id: str, old: TraceEvent) -> Problem:
        where = "its first messages" if old.turn_id is None else f"turn {old.turn_id!r}"
        what = f"conversation {id!r} was taken before, and {where} was another; a watch adds turns to a conversation and changes none"
        if self._layout.id is None:
            what += "; where a line number can come twice, name conversations by the option id"
        return Problem(what, path="id", value=id)


def context_of(end_event: TraceEvent) -> Mapping[str, object]:
    """Return the other fields of a conversation's record, which are in the event of its end."""
    context = end_event.extra.get(_CONTEXT)
    return context if isinstance(context, Mapping) else {}


def _end_event(event: TraceEvent, context: Mapping[str, object]) -> TraceEvent:
    return attrs.evolve(event, extra={_CONTEXT: context}) if context else event
