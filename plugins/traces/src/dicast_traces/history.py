"""From the rows of a ledger back to the trace events that subjects are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import attrs

from dicast import Entry, Event, TraceEvent

from .assembly import turn_of

_ENDS = ("tool.completed", "tool.failed")
_TOLD_APART = "trace."
"""What stands before the type of a trace's own event that is called like an event of a run."""


@attrs.frozen(eq=False)
class Row:
    """A trace event as the ledger has it, at *seq*, told when the subject at *block* was read; 0 where it was recorded live.

    *turn* is the turn it belongs to; *at* is when it happened, in UTC, None where only the time of its telling is known.
    """

    seq: int
    event: TraceEvent
    block: int
    turn: str | None
    at: str | None

    @property
    def use_id(self) -> str | int | None:
        """The call of a tool that it is about."""
        found = self.event.payload.get("tool_use_id")
        return found if isinstance(found, str | int) else None


class History:
    """The trace events of one session, as far as the ledger was read.

    A run tells each event once, with the first subject that is made of it: tool cycles before their turn, turns before their
    session. So what a subject is made of may have been told with others before, and in another order than it happened.
    """

    def __init__(self) -> None:
        self._session: str | None = None
        self._read: tuple[int, str | None] = (0, None)
        self._clear()

    def _clear(self) -> None:
        self._rows: list[Row] = []
        self._block: list[Row] = []
        self._turns: dict[str | None, list[Row]] = {}
        self._calls: dict[str, Row] = {}
        self._ends: dict[str | int | None, Row] = {}

    def begin(self, read: Entry) -> None:
        """Take notice that a subject was read: the events that follow are those that it brought."""
        if read.event.session_id != self._session:
            self._session = read.event.session_id
            self._clear()
        self._read = read.seq, moment(read.event.time)
        self._block = []

    def add(self, seq: int, event: TraceEvent) -> None:
        """Take the next event."""
        block, told = self._read
        at = moment(event.time or "")
        # One without a time of its own has that of its telling, which is after the subject was read.
        own = at if at is not None and told is not None and at < told else None
        row = Row(seq, event, block, turn_of(event), own)
        self._rows.append(row)
        if block:  # else it was recorded by itself
            self._block.append(row)
        self._turns.setdefault(row.turn, []).append(row)
        if event.type == "tool.called" and row.use_id is not None:
            self._calls[str(row.use_id)] = row
        elif event.type in _ENDS:
            self._ends[row.use_id] = row

    def events(self, kind: str, id: str) -> tuple[TraceEvent, ...]:
        """The events that the subject *id* is made of, which is the one that was read last."""
        return tuple(row.event for row in self._made_of(kind, id))

    def _made_of(self, kind: str, id: str) -> Sequence[Row]:
        if kind == "tool_cycle" and id in self._calls:
            return self._cycle(self._calls[id])
        if kind == "turn":
            return _in_order([*self._turns.get(id, ()), *(row for row in self._block if row.turn != id)])
        return _in_order(self._rows) if kind == "session" else self._block

    def _cycle(self, call: Row) -> list[Row]:
        """The call, its end, and the calls that follow in its turn."""
        end = self._ends.get(call.use_id)
        following = (row for row in self._turns[call.turn] if row.seq > call.seq and row.event.type == "tool.called")
        return [call, *([end] if end else []), *following]


def _in_order(rows: Sequence[Row]) -> Sequence[Row]:
    """*rows* as they happened: as they were told at one time, else by their own times where all of them have one.

    Without times a call's end is put right after the call, from which the subjects of its turn's tool cycles have parted it.
    """
    if len({row.block for row in rows}) == 1:
        return rows
    if all(row.at is not None for row in rows):
        return sorted(rows, key=lambda row: str(row.at))
    calls = {row.use_id for row in rows if row.event.type == "tool.called"}
    ends = {row.use_id: row for row in rows if row.event.type in _ENDS and row.use_id in calls}
    waiting, ordered = dict(ends), []
    for row in rows:
        if ends.get(row.use_id) is not row:
            ordered.append(row)
        if row.event.type == "tool.called" and row.use_id in waiting:
            ordered.append(waiting.pop(row.use_id))
    return ordered


def trace_event(event: Event) -> TraceEvent | None:
    """The event of a trace that *event* holds, None for one that the run itself made."""
    if event.subject_kind is not None or event.sensitivity != "user_controlled":
        return None
    payload, extra = event.payload, event.payload.get("extra")
    if isinstance(extra, Mapping):
        payload = {key: value for key, value in payload.items() if key != "extra"}
    else:
        extra = {}
    type_ = event.type.removeprefix(_TOLD_APART)
    return TraceEvent(type_, payload, event.time, event.session_id, event.turn_id, extra)


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
