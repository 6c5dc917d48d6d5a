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
_ENDED = "session.ended"
_APART = (_ENDED, *FEEDBACK)
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
        """The counts of what this process has read."""
        return self._reader.totals

    def events(self, line: Line) -> Sequence[TraceEvent] | None:
        """What the line adds to what is known, which is nothing where it was there before; None for a blank line.

        :raises DataError: (without a place) when it is no conversation, or changes what was taken before.
        """
        record = line.record()
        if record is None:
            return None
        id = self._layout.session_id(line.number, record)
        found = self._reader.session(id, record)
        if isinstance(found, Failure):
            raise DataError(Problem(f"conversation {id!r} is not judged: {found.message}", path="error"))
        told = [event for event in found.log if event.type not in _APART]
        before = self._log(id)
        known = [event for event in before if event.type not in _APART]
        for new, old in zip(told, known, strict=False):
            if new != old:
                raise DataError(self._changed(id, old))
        fresh, ended = told[len(known) :], _ended(found.log[-1], found.context)
        last = next((event for event in reversed(before) if event.type == _ENDED), None)
        stale = len(told) < len(known)  # an earlier state of it, read again
        return fresh if stale or ended == last else [*fresh, ended]

    def _name_call(self, turn_id: str, call_id: str) -> str:
        holder = self._names.holder("tool_cycle", call_id)
        own = holder is None or turn_id.startswith(f"{holder}/")
        return call_id if own else f"{turn_id}/{call_id}"

    def _changed(self, id: str, old: TraceEvent) -> Problem:
        where = "its first messages" if old.turn_id is None else f"turn {old.turn_id!r}"
        what = f"conversation {id!r} was taken before, and {where} was another; a watch adds turns to a conversation and changes none"
        if self._layout.id is None:
            what += "; where a line number can come twice, name conversations by the option id"
        return Problem(what, path="id", value=id)


def context_of(ended: TraceEvent) -> Mapping[str, object]:
    """What else the record of a conversation has, which the event of its end brings along."""
    context = ended.extra.get(_CONTEXT)
    return context if isinstance(context, Mapping) else {}


def _ended(event: TraceEvent, context: Mapping[str, object]) -> TraceEvent:
    return attrs.evolve(event, extra={_CONTEXT: context}) if context else event
