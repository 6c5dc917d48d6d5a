"""The state machine over trace events that decides which subjects are due. The caller passes the time; it reads and writes nothing."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from dicast import DataError, Lookahead, Problem, Subject, TraceEvent
from dicast.toolkit.assembly import Assembly, turn_of
from dicast.toolkit.sessions import Kind, session_subject, turn_subjects

from .identity import identity
from .names import Names
from .watched import BUS, FEEDBACK_ARRIVED, Decision, Watched

GRACE = 0.2
"""Seconds between the end of a session and its judgment, because events may arrive out of order."""

LINGER = 5.0
"""Seconds for which a session that has ended and is judged stays in memory."""

IDLE = 3600.0
"""Seconds without an event after which an open session without waiting subjects leaves memory."""

HOUR = 3600.0


ContextOf = Callable[[TraceEvent], Mapping[str, object]]


def no_context(end_event: TraceEvent) -> Mapping[str, object]:
    """Return no context: a trace has only its events."""
    return {}


class Archive(Protocol):
    """The events of sessions that are not in memory."""

    def events(self, session_id: str) -> Iterable[tuple[TraceEvent, float]]:
        """Return the events of a session with their times of arrival, in their order; no events for an unknown session."""
        ...


class Windows:
    """The running sessions. Times are seconds since the epoch.

    :param kinds: the kinds of subjects to judge.
    :param lookahead: the time that a turn waits.
    :param context: returns the context of a session's subjects, from the event that ended it.
    :param backfilling: true while old events are added: hours do not count yet, because more events follow.
    """

    def __init__(
        self,
        kinds: Sequence[Kind],
        lookahead: Lookahead,
        archive: Archive,
        names: Names,
        context: ContextOf = no_context,
    ) -> None:
        self.backfilling, self._context = False, context
        self._kinds, self._lookahead, self._archive, self._names = kinds, lookahead, archive, names
        self._sessions: dict[str, Watched] = {}
        self._asleep: dict[str, None] = {}  # sessions that have not ended, and are not in memory
        self._touched: dict[str, None] = {}
        self._timers: list[tuple[float, str]] = []
        self._forgot = False

    def add(self, event: TraceEvent, now: float, own_time: float | None = None, *, trusted: bool = False) -> bool:
        """Add an event that arrived at *now*; return False for a repeat of a known event.

        *own_time* is its own time, if it counts. A *trusted* event is known to contradict nothing.

        :raises DataError: (without a place) if it contradicts earlier events.
        """
        session = self._session(str(event.session_id))
        digest = identity(event)
        if digest is not None:
            if digest in session.seen:
                return False
            if not trusted:
                self._refuse(session, event)
            session.seen.add(digest)
        if (name := self._name(event)) is not None:
            self._names.note(*name, session.assembly.id)
        self._apply(session, event, now, now if own_time is None else min(now, own_time))
        self._touched[session.assembly.id] = None
        return True

    def log(self, session_id: str) -> Sequence[TraceEvent]:
        """Return all events of a session."""
        return self._session(session_id).assembly.log

    def due(self, now: float) -> list[Decision]:
        """Return the decisions for now, each turn before its session. :meth:`take` must follow for each of them."""
        return [decision for id in self._stirred(now) for decision in self._look_at(id, now)]

    def take(self, decision: Decision) -> list[Subject]:
        """Return the subjects of *decision* in their present state, finest first."""
        session = self._session(decision.session_id)
        match decision.kind:
            case "session":
                due_subjects = self._session_subjects(session)
            case "call":
                due_subjects = [session.take_call(decision.id)]
            case _:
                due_subjects = self._turn_subjects(session, decision)
        session.open += len(due_subjects)
        self._touched[decision.session_id] = None
        return due_subjects

    def settle(self, session_id: str) -> None:
        """Record that one of the session's subjects was judged."""
        session = self._sessions[session_id]
        session.open -= 1
        if not session.open:
            self._touched[session_id] = None

    def caught_up(self) -> None:
        """Count hours from now on: all old events were added."""
        self.backfilling = False
        self._touched |= dict.fromkeys(self._sessions)

    def close(self, now: float) -> list[Decision]:
        """Return the remaining decisions at the end of the input: every completed turn, and every session."""
        for id in (*self._asleep, *self._sessions):
            session = self._session(id)
            session.end_time = now - GRACE if session.end_time is None else min(session.end_time, now - GRACE)
            session.due = session.due or (None if session.is_judged else BUS)
            self._touched[id] = None
        return self.due(now)

    def sweep(self, now: float) -> None:
        """Remove the sessions that are due to leave memory, without decisions; for the replay of earlier decisions."""
        for id in self._stirred(now):
            if id in self._sessions:
                self._schedule(self._sessions[id], now)

    def deadline(self) -> float | None:
        """Return the time of the next call of :meth:`due`, if no event comes."""
        if self._touched:
            return 0.0
        return self._timers[0][0] if self._timers else None

    @property
    def sessions(self) -> int:
        """Number of sessions in memory."""
        return len(self._sessions)

    @property
    def going_on(self) -> int:
        """Number of sessions without an end, in memory or not."""
        return len(self._asleep) + sum(session.end_time is None for session in self._sessions.values())

    @property
    def waiting(self) -> int:
        """The number of completed turns that wait for the next messages of their users."""
        return sum(len(session.waiting) for session in self._sessions.values())

    def _session(self, id: str) -> Watched:
        """Return the session *id*, which may be new, or no longer in memory."""
        session = self._sessions.get(id)
        if session is None:
            session = self._sessions[id] = Watched(Assembly(id))
            if self._forgot:
                self._remember(session)
            self._asleep.pop(id, None)
        return session

    def _remember(self, session: Watched) -> None:
        """Bring a session back to memory. When it left, every complete subject of it had been judged."""
        for event, arrived in self._archive.events(session.assembly.id):
            if (digest := identity(event)) is not None:
                session.seen.add(digest)
            self._apply(session, event, arrived, arrived)
            session.judged |= session.waiting.keys()
            session.waiting.clear()
            for id in session.ended_calls:
                session.judged_counts[id] = session.calls.count(id)
            session.ended_calls.clear()
        session.is_judged = session.end_time is not None
        session.again, session.due = {}, None

    def _refuse(self, session: Watched, event: TraceEvent) -> None:
        """Refuse a second end of a turn, and an id that names two subjects."""
        turn_id = str(event.turn_id)
        if event.type == "turn.completed" and session.assembly.is_completed(turn_id):
            what = f"turn {turn_id!r} was completed before, with other data; a turn ends once"
            raise DataError(Problem(what, path="turn_id", value=turn_id))
        if (name := self._name(event)) is None:
            return
        if (holder := self._names.holder(*name)) is not None:
            path = "turn_id" if event.type == "turn.completed" else "payload.tool_use_id"
            what = f"{name[1]!r} names a {name[0]} in session {holder!r} already; the ids of a kind are unique"
            raise DataError(Problem(what, path=path, value=name[1]))

    def _name(self, event: TraceEvent) -> tuple[str, str] | None:
        """Return the kind and the id of the subject that *event* makes, or None."""
        if event.type == "turn.completed" and "turn" in self._kinds:
            return "turn", str(event.turn_id)
        if event.type == "tool.called" and "tool_cycle" in self._kinds:
            return "tool_cycle", str(event.payload["tool_use_id"])
        return None

    def note_place(self, session_id: str | None, place: str) -> None:
        """Note where the data of a session come from, unless it is known."""
        session = self._sessions.get(str(session_id))
        if session is not None and session.assembly.place is None:
            session.assembly.place = place

    def _apply(self, session: Watched, event: TraceEvent, now: float, progress: float) -> None:
        session.assembly.add(event)
        session.arrived, session.progress = max(session.arrived, now), max(session.progress, progress)
        match event.type:
            case "turn.completed":
                session.waiting[str(event.turn_id)] = None
                session.due = session.due or (BUS if session.is_judged else None)
                session.learn(str(event.turn_id))
            case "tool.called" | "tool.completed" | "tool.failed" if "tool_cycle" in self._kinds:
                session.note_call(event)
            case "session.ended":
                session.end_time, session.due = now, session.due or BUS
                session.assembly.context = self._context(event)
            case "feedback.explicit" | "feedback.implicit":
                about = turn_of(event)
                if about in session.judged:
                    session.again[str(about)] = None
                session.due = session.due or (FEEDBACK_ARRIVED if session.is_judged else None)

    def _stirred(self, now: float) -> Iterable[str]:
        """Return the sessions with new events, and the sessions whose time has come."""
        while self._timers and self._timers[0][0] <= now:
            self._touched[heapq.heappop(self._timers)[1]] = None
        stirred, self._touched = self._touched, {}
        return stirred

    def _look_at(self, id: str, now: float) -> list[Decision]:
        """Return the decisions about one session; without a decision, remove it from memory or set its next check."""
        session = self._sessions.get(id)
        if session is None:
            return []
        closed = session.end_time is not None and now >= session.end_time + GRACE
        late = self._hours_passed(session, now)
        messages = self._lookahead.messages
        turns = [turn for turn in session.waiting if closed or late or session.assembly.later(turn) >= messages]
        decisions = [Decision("call", id, call, BUS) for call in session.ended_calls]
        decisions += [Decision("turn", id, turn, BUS) for turn in turns]
        for turn in session.again:
            kinds = ("tool_cycle", "turn") if turn in session.late else ("turn",)
            decisions += [Decision(kind, id, turn, FEEDBACK_ARRIVED) for kind in kinds]
        if closed and session.due:
            decisions.append(Decision("session", id, id, session.due))
        if not decisions:
            self._schedule(session, now)
        return decisions

    def _hours_passed(self, session: Watched, now: float) -> bool:
        return not self.backfilling and now >= session.progress + self._lookahead.hours * HOUR

    def _schedule(self, session: Watched, now: float) -> None:
        """Set the next check of the session, or remove it from memory."""
        id, end_time_ = session.assembly.id, session.end_time
        if session.is_settled:
            leaves = session.arrived + (IDLE if end_time_ is None else LINGER)
            if now >= leaves:
                self._forget(session)
                return
            times = [leaves]
        else:
            times = [] if self.backfilling or not session.waiting else [session.progress + self._lookahead.hours * HOUR]
            if end_time_ is not None and (session.waiting or session.due):
                times.append(end_time_ + GRACE)
        soonest = min(times, default=None)
        if soonest is not None and (session.check is None or session.check <= now or soonest < session.check):
            session.check = soonest
            heapq.heappush(self._timers, (soonest, id))

    def _forget(self, session: Watched) -> None:
        id = session.assembly.id
        del self._sessions[id]
        self._forgot = True
        if session.end_time is None:
            self._asleep[id] = None

    def _turn_subjects(self, session: Watched, decision: Decision) -> list[Subject]:
        turn_id, assembly = decision.id, session.assembly
        calls = session.calls.of_turn(turn_id) if "tool_cycle" in self._kinds else []
        if decision.kind == "turn":
            again = set(session.calls.learned(turn_id, session.judged_counts))
            calls = (
                [id for id in calls if id in again or id not in session.judged_counts]
                if decision.trigger == BUS
                else []
            )
        session.waiting.pop(turn_id, None)
        session.again.pop(turn_id, None)
        session.late.discard(turn_id)
        session.judged.add(turn_id)
        cycles = [session.take_call(id) for id in calls]
        kinds: tuple[Kind, ...] = ("turn",) if decision.kind == "turn" and "turn" in self._kinds else ()
        return [*cycles, *turn_subjects(assembly.outline(), assembly.turn(turn_id), kinds, assembly.ends)]

    def _session_subjects(self, session: Watched) -> list[Subject]:
        session.due, session.is_judged = None, True
        return [session_subject(session.assembly.session())] if "session" in self._kinds else []
