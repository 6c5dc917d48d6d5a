"""Trace events of subjects, restored from the rows of a ledger."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Protocol

from dicast import DataError, Entry, TraceEvent, Trail
from dicast.toolkit.assembly import Assembly

from .calls import Calls


class History(Protocol):
    """The trace events in the rows of a ledger that were read so far."""

    def begin(self, read: Entry) -> None:
        """Take notice that a subject was read."""
        ...

    def add(self, event: TraceEvent) -> None:
        """Take the next event."""
        ...

    def events(self) -> tuple[TraceEvent, ...]:
        """Return the events of the newest subject."""
        ...

    def trail(self) -> Trail:
        """Return the events before the newest subject; an empty trail if the ledger does not have them."""
        ...


class RecordedOnce:
    """The trace events of a run that recorded each event once: right after the reading of the first subject that contains it.

    The row of a reading has the places of the subject's events among the recorded events of its session. The count
    restarts if subjects of another session come between.
    """

    def __init__(self) -> None:
        self._session_events: list[TraceEvent] = []
        self._fresh: list[TraceEvent] = []
        self._places: Sequence[tuple[int, int]] = ()
        self._read = self._stop = 0

    def begin(self, read: Entry) -> None:
        """Start a subject: the next events were recorded with it."""
        self._take_fresh()
        payload: Any = read.event.payload
        self._places, self._stop, self._read = payload.get("events", ()), payload.get("trail", 0), read.seq

    def add(self, event: TraceEvent) -> None:
        """Take the next event."""
        self._fresh.append(event)

    def events(self) -> tuple[TraceEvent, ...]:
        """Return the events of the newest subject.

        :raises DataError: if the ledger lacks some of them.
        """
        self._take_fresh()
        if self._end() > len(self._session_events):
            raise DataError(
                f"the ledger lacks events of the subject at row {self._read}; dicast ledger verify checks it"
            )
        return tuple(chain.from_iterable(self._session_events[start:stop] for start, stop in self._places))

    def trail(self) -> Trail:
        """Return the events before the newest subject; an empty trail if the ledger does not have them."""
        return Trail(self._session_events, self._stop)

    def _take_fresh(self) -> None:
        """Append the events of a subject to the earlier events. After a restart of the count there are no earlier events.

        The list is new, because subjects that are still being judged refer to the previous list.
        """
        if self._fresh:
            self._session_events = [*self._session_events[: max(0, self._end() - len(self._fresh))], *self._fresh]
            self._fresh = []

    def _end(self) -> int:
        return max((self._stop, *(stop for _, stop in self._places)))


class Watched:
    """The trace events of one session that were recorded as they arrived. A subject contains the events up to its reading."""

    def __init__(self, session_id: str) -> None:
        self._assembly = Assembly(session_id)
        self._calls = Calls()
        self._read: tuple[str | None, str | None] = (None, None)

    def begin(self, read: Entry) -> None:
        """Take notice that a subject was read."""
        self._read = read.event.subject_kind, read.event.subject_id

    def add(self, event: TraceEvent) -> None:
        """Take the next event."""
        self._assembly.add(event)
        if event.type == "tool.called":
            self._calls.add(event, len(self._assembly.log) - 1)

    def events(self) -> tuple[TraceEvent, ...]:
        """Return the events of the newest subject; no events for a kind that traces do not have."""
        kind, id = str(self._read[0]), str(self._read[1])
        if kind == "session":
            return tuple(self._assembly.events)
        if kind == "turn":
            return self._assembly.events_of(id)
        return self._calls.events(id, self._assembly.ends) if kind == "tool_cycle" and id in self._calls else ()

    def trail(self) -> Trail:
        """Return the events before the newest subject."""
        kind, id = str(self._read[0]), str(self._read[1])
        log = self._assembly.log
        if kind in ("turn", "session"):
            return Trail(log, self._assembly.ends_at(id) if kind == "turn" else len(log))
        return Trail(log, self._calls.place(id)) if kind == "tool_cycle" and id in self._calls else Trail()


def moment(time: str) -> str | None:
    """Return an ISO 8601 *time* in UTC, in a form that sorts; None for any other text. A time without an offset is UTC."""
    try:
        parsed = datetime.fromisoformat(time)
        return sortable(parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        return None


def sortable(time: datetime) -> str:
    """Return *time*, which has an offset, in UTC, in a form that sorts as text."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")
