"""From the rows of a ledger back to the trace events that subjects are made of."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Protocol

from dicast import DataError, Entry, TraceEvent, Trail
from dicast.toolkit.assembly import Assembly

from .calls import Calls


class History(Protocol):
    """The trace events that a ledger has, as far as it was read."""

    def begin(self, read: Entry) -> None:
        """Take notice that a subject was read."""
        ...

    def add(self, event: TraceEvent) -> None:
        """Take the next event."""
        ...

    def events(self) -> tuple[TraceEvent, ...]:
        """The events that the subject is made of that was read last."""
        ...

    def trail(self) -> Trail:
        """What had happened when the subject was there that was read last; empty where the ledger does not say."""
        ...


class Told:
    """The trace events of a run that told each of them once: right after the first subject that is made of it was read.

    What a subject is made of is said where it was read, by the places of its events among those told of its session. They
    are counted anew where the subjects of another session lie between.
    """

    def __init__(self) -> None:
        self._known: list[TraceEvent] = []
        self._fresh: list[TraceEvent] = []
        self._places: Sequence[tuple[int, int]] = ()
        self._read = self._stop = 0

    def begin(self, read: Entry) -> None:
        """Take notice that a subject was read: the events that follow are those that it brought."""
        self._take_fresh()
        payload: Any = read.event.payload
        self._places, self._stop, self._read = payload.get("events", ()), payload.get("trail", 0), read.seq

    def add(self, event: TraceEvent) -> None:
        """Take the next event."""
        self._fresh.append(event)

    def events(self) -> tuple[TraceEvent, ...]:
        """The events that the subject is made of that was read last.

        :raises DataError: when the ledger lacks some of them.
        """
        self._take_fresh()
        if self._end() > len(self._known):
            raise DataError(
                f"the ledger lacks events of the subject at row {self._read}; dicast ledger verify checks it"
            )
        return tuple(chain.from_iterable(self._known[start:stop] for start, stop in self._places))

    def trail(self) -> Trail:
        """What had happened when the subject was there that was read last; empty where the ledger does not say."""
        return Trail(self._known, self._stop)

    def _take_fresh(self) -> None:
        """Put the events that a subject brought behind those known before, of which there are none where counting began anew.

        The list is a new one, because subjects that are still judged have the one before.
        """
        if self._fresh:
            self._known = [*self._known[: max(0, self._end() - len(self._fresh))], *self._fresh]
            self._fresh = []

    def _end(self) -> int:
        return max((self._stop, *(stop for _, stop in self._places)))


class Watched:
    """The trace events of one session that were recorded as they came; a subject is made of what there was when it was read."""

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
        """The events that the subject is made of that was read last; none of a kind that no trace has."""
        kind, id = str(self._read[0]), str(self._read[1])
        if kind == "session":
            return tuple(self._assembly.events)
        if kind == "turn":
            return self._assembly.events_of(id)
        return self._calls.events(id, self._assembly.ends) if kind == "tool_cycle" and id in self._calls else ()

    def trail(self) -> Trail:
        """What had happened when the subject was there that was read last."""
        kind, id = str(self._read[0]), str(self._read[1])
        log = self._assembly.log
        if kind in ("turn", "session"):
            return Trail(log, self._assembly.ends_at(id) if kind == "turn" else len(log))
        return Trail(log, self._calls.place(id)) if kind == "tool_cycle" and id in self._calls else Trail()


def moment(time: str) -> str | None:
    """An ISO 8601 *time* in UTC, in a form that sorts; None for what is none. One without an offset is UTC."""
    try:
        parsed = datetime.fromisoformat(time)
        return sortable(parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        return None


def sortable(time: datetime) -> str:
    """*time* (aware) in UTC, in a form that sorts."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")
