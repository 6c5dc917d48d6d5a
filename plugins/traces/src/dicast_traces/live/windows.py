"""Which subjects are due: a state machine over trace events. It is told the time, and reads and writes nothing."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from dicast import DataError, Lookahead, Problem, Subject, TraceEvent
from dicast.toolkit.assembly import Assembly, turn_of
from dicast.toolkit.sessions import Kind, Session, session_subject, turn_subjects

from .identity import identity
from .names import Names
from .watched import BUS, FEEDBACK_ARRIVED, Decision, Watched

GRACE = 0.2
"""Seconds between the end of a session and its verdict: events overtake each other on their way."""

LINGER = 5.0
"""Seconds for which a session that has ended and is judged stays in memory."""

IDLE = 3600.0
"""Seconds without an event after which a session that goes on, and of which nothing waits, leaves memory."""

HOUR = 3600.0


ContextOf = Callable[[TraceEvent], Mapping[str, object]]


def no_context(ended: TraceEvent) -> Mapping[str, object]:
    """Nothing: a trace has no more than its events."""
    return {}


class Archive(Protocol):
    """What is known of sessions that are not in memory."""

    def events(self, session_id: str) -> Iterable[tuple[TraceEvent, float]]:
        """The events of a session with the times at which they arrived, in their order; none of an unknown one."""
        ...


class Windows:
    """The sessions that go on. Times are seconds since the epoch.

    :param kinds: what is judged.
    :param lookahead: how long a turn waits.
    :param context: gives the context of a session's subjects, from the event that ended it.
    :param backfilling: whether what is added is old, so that hours do not count yet: more of it is to come.
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
        """Take an event that arrived at *now*; False for one that is known already.

        *own_time* is its own, where that counts; a *trusted* one is known to contradict nothing.

        :raises DataError: (without a place) when it contradicts what is known.
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
        """All that has happened in a session."""
        return self._session(session_id).assembly.log

    def due(self, now: float) -> list[Decision]:
        """What is to be judged now, each turn before its session; :meth:`take` has to follow for each of them."""
        return [decision for id in self._stirred(now) for decision in self._look_at(id, now)]

    def take(self, decision: Decision) -> list[Subject]:
        """The subjects that *decision* is about, as they are now, finest first."""
        session = self._session(decision.session_id)
        match decision.kind:
            case "session":
                found = self._session_subjects(session)
            case "call":
                found = [session.take_call(decision.id)]
            case _:
                found = self._turn_subjects(session, decision)
        session.open += len(found)
        self._touched[decision.session_id] = None
        return found

    def settle(self, session_id: str) -> None:
        """Note that one of the session's subjects was judged."""
        session = self._sessions[session_id]
        session.open -= 1
        if not session.open:
            self._touched[session_id] = None

    def caught_up(self) -> None:
        """Let hours count from now on: all that is old was added."""
        self.backfilling = False
        self._touched |= dict.fromkeys(self._sessions)

    def close(self, now: float) -> list[Decision]:
        """What is left to be judged where nothing can follow any more: every turn that was completed, and every session."""
        for id in (*self._asleep, *self._sessions):
            session = self._session(id)
            session.ended = now - GRACE if session.ended is None else min(session.ended, now - GRACE)
            session.due = session.due or (None if session.is_judged else BUS)
            self._touched[id] = None
        return self.due(now)

    def sweep(self, now: float) -> None:
        """Let sessions leave memory whose time has come, and decide nothing: for when decisions of before are told again."""
        for id in self._stirred(now):
            if id in self._sessions:
                self._schedule(self._sessions[id], now)

    def deadline(self) -> float | None:
        """When :meth:`due` has to be asked next, if no event comes."""
        if self._touched:
            return 0.0
        return self._timers[0][0] if self._timers else None

    @property
    def sessions(self) -> int:
        """How many sessions are in memory."""
        return len(self._sessions)

    @property
    def going_on(self) -> int:
        """How many sessions have not ended, in memory or not."""
        return len(self._asleep) + sum(session.ended is None for session in self._sessions.values())

    @property
    def waiting(self) -> int:
        """How many completed turns wait for what their users do next."""
        return sum(len(session.waiting) for session in self._sessions.values())

    def _session(self, id: str) -> Watched:
        """The session *id*, which may be new, or no longer in memory."""
        session = self._sessions.get(id)
        if session is None:
            session = self._sessions[id] = Watched(Assembly(id))
            if self._forgot:
                self._remember(session)
            self._asleep.pop(id, None)
        return session

    def _remember(self, session: Watched) -> None:
        """Bring a session back. It left memory when nothing of it waited: all that was complete had been judged."""
        for event, arrived in self._archive.events(session.assembly.id):
            if (digest := identity(event)) is not None:
                session.seen.add(digest)
            self._apply(session, event, arrived, arrived)
            session.judged |= session.waiting.keys()
            session.waiting.clear()
            for id in session.ended_calls:
                session.known[id] = session.calls.count(id)
            session.ended_calls.clear()
        session.is_judged = session.ended is not None
        session.again, session.due = {}, None

    def _refuse(self, session: Watched, event: TraceEvent) -> None:
        """Refuse a second end of a turn, and an id that names two subjects."""
        turn_id = str(event.turn_id)
        if event.type == "turn.completed" and session.assembly.is_completed(turn_id):
            what = f"turn {turn_id!r} was completed already, and otherwise; a turn ends once"
            raise DataError(Problem(what, path="turn_id", value=turn_id))
        if (name := self._name(event)) is None:
            return
        if (holder := self._names.holder(*name)) is not None:
            path = "turn_id" if event.type == "turn.completed" else "payload.tool_use_id"
            what = f"{name[1]!r} names a {name[0]} in session {holder!r} already; the ids of a kind are unique"
            raise DataError(Problem(what, path=path, value=name[1]))

    def _name(self, event: TraceEvent) -> tuple[str, str] | None:
        """The kind and the id of the subject that *event* makes, if it does."""
        if event.type == "turn.completed" and "turn" in self._kinds:
            return "turn", str(event.turn_id)
        if event.type == "tool.called" and "tool_cycle" in self._kinds:
            return "tool_cycle", str(event.payload["tool_use_id"])
        return None

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
                session.ended, session.due = now, session.due or BUS
                session.assembly.context = self._context(event)
            case "feedback.explicit" | "feedback.implicit":
                about = turn_of(event)
                if about in session.judged:
                    session.again[str(about)] = None
                session.due = session.due or (FEEDBACK_ARRIVED if session.is_judged else None)

    def _stirred(self, now: float) -> Iterable[str]:
        """The sessions that something has happened to since, or whose time has come."""
        while self._timers and self._timers[0][0] <= now:
            self._touched[heapq.heappop(self._timers)[1]] = None
        stirred, self._touched = self._touched, {}
        return stirred

    def _look_at(self, id: str, now: float) -> list[Decision]:
        """What of one session is due; let it leave memory, or say when it is to be looked at again."""
        session = self._sessions.get(id)
        if session is None:
            return []
        closed = session.ended is not None and now >= session.ended + GRACE
        late = self._hours_passed(session, now)
        messages = self._lookahead.messages
        turns = [turn for turn in session.waiting if closed or late or session.assembly.later(turn) >= messages]
        found = [Decision("call", id, call, BUS) for call in session.ended_calls]
        found += [Decision("turn", id, turn, BUS) for turn in turns]
        for turn in session.again:
            kinds = ("tool_cycle", "turn") if turn in session.late else ("turn",)
            found += [Decision(kind, id, turn, FEEDBACK_ARRIVED) for kind in kinds]
        if closed and session.due:
            found.append(Decision("session", id, id, session.due))
        if not found:
            self._schedule(session, now)
        return found

    def _hours_passed(self, session: Watched, now: float) -> bool:
        return not self.backfilling and now >= session.progress + self._lookahead.hours * HOUR

    def _schedule(self, session: Watched, now: float) -> None:
        """Say when the session is to be looked at again, or let it leave memory."""
        id, ended = session.assembly.id, session.ended
        if session.is_settled:
            leaves = session.arrived + (IDLE if ended is None else LINGER)
            if now >= leaves:
                self._forget(session)
                return
            times = [leaves]
        else:
            times = [] if self.backfilling or not session.waiting else [session.progress + self._lookahead.hours * HOUR]
            if ended is not None and (session.waiting or session.due):
                times.append(ended + GRACE)
        soonest = min(times, default=None)
        if soonest is not None and (session.check is None or session.check <= now or soonest < session.check):
            session.check = soonest
            heapq.heappush(self._timers, (soonest, id))

    def _forget(self, session: Watched) -> None:
        id = session.assembly.id
        del self._sessions[id]
        self._forgot = True
        if session.ended is None:
            self._asleep[id] = None

    def _turn_subjects(self, session: Watched, decision: Decision) -> list[Subject]:
        turn_id, assembly = decision.id, session.assembly
        calls = session.calls.of_turn(turn_id) if "tool_cycle" in self._kinds else []
        if decision.kind == "turn":
            again = set(session.calls.learned(turn_id, session.known))
            calls = [id for id in calls if id in again or id not in session.known] if decision.trigger == BUS else []
        session.waiting.pop(turn_id, None)
        session.again.pop(turn_id, None)
        session.late.discard(turn_id)
        session.judged.add(turn_id)
        cycles = [session.take_call(id) for id in calls]
        kinds: tuple[Kind, ...] = ("turn",) if decision.kind == "turn" and "turn" in self._kinds else ()
        told = Session(assembly.id, (), (), assembly.context, assembly.log)
        return [*cycles, *turn_subjects(told, assembly.turn(turn_id), kinds, assembly.ends)]

    def _session_subjects(self, session: Watched) -> list[Subject]:
        session.due, session.is_judged = None, True
        return [session_subject(session.assembly.session())] if "session" in self._kinds else []
