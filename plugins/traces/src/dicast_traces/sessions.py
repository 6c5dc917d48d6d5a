"""A session of an agent with its turns, and the subjects that it makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import attrs

from dicast import ConfigError, Problem, Subject, TraceEvent, Trail

Kind = Literal["tool_cycle", "turn", "session"]
KINDS: tuple[Kind, ...] = ("tool_cycle", "turn", "session")
"""What a session can be judged by, finest first."""

FOLLOWING = 20
"""How many of the calls that follow it in its turn a tool cycle has: with all of them a turn's work would grow with their square."""


def chosen(subjects: Sequence[Kind]) -> tuple[Kind, ...]:
    """The *subjects* a source was asked for, finest first.

    :raises ConfigError: when there are none, or one that does not exist.
    """
    if not subjects or (unknown := [kind for kind in subjects if kind not in KINDS]):
        what = f"unknown subject kind {unknown[0]!r}" if subjects else "no subject kinds"
        raise ConfigError(Problem(f"{what}; choose from {', '.join(KINDS)}", path="subjects"))
    return tuple(kind for kind in KINDS if kind in subjects)


MESSAGE = "message.sent"
"""What was said and no other event has; in the session's log alone, and not among the events of its subjects."""


@attrs.frozen
class Turn:
    """A completed turn: its *events* in order, what the user asked, what the assistant said last.

    *begins* and *ends* are where it stands in the session's log, from its first event to behind its end; *feedback_after* says of each feedback event among them how many later turns had begun when it was given.
    """

    id: str
    events: tuple[TraceEvent, ...]
    feedback_after: tuple[int, ...] = ()
    begins: int = 0
    ends: int = 0

    def said(self) -> tuple[object, object]:
        """The user's text, None where unknown, and the assistant's last text, empty where there is none."""
        completed = next(event for event in reversed(self.events) if event.type == "turn.completed")
        texts = completed.payload.get("signals_extra")
        if not isinstance(texts, Mapping):
            return None, ""
        finals = [str(texts.get(key) or "") for key in ("final_response_text", "assistant_response_text")]
        return texts.get("user_prompt_text"), next((text for text in finals if text.strip()), finals[0] or finals[1])


@attrs.frozen
class Session:
    """A session: its completed *turns*, and all its *events*; *context* is what else is known of it.

    *log* is all that happened, in order: the events, and messages that no event of them has.
    """

    id: str
    turns: Sequence[Turn]
    events: Sequence[TraceEvent]
    context: Mapping[str, object]
    log: Sequence[TraceEvent]


def subjects(session: Session, kinds: Sequence[Kind], *, history: bool = False) -> Iterator[Subject]:
    """The tool cycles of a turn, then the turn, for one turn after the other, what ended in other turns, and the session last.

    With *history* the context of a tool cycle has all earlier calls of the session, as ``execution_history``.
    """
    ends = _ends(session.events) if "tool_cycle" in kinds else {}
    earlier: list[dict[str, object]] = []
    for turn in session.turns:
        for subject in turn_subjects(session, turn, kinds, ends):
            if history and subject.kind == "tool_cycle":
                yield attrs.evolve(subject, context={**subject.context, "execution_history": earlier.copy()})
                earlier.append(_step(subject.events[0]))
            else:
                yield subject
    if "tool_cycle" in kinds:
        yield from _unfinished(session, ends)
    if "session" in kinds:
        yield session_subject(session)


def turn_subjects(
    session: Session, turn: Turn, kinds: Sequence[Kind], ends: Mapping[object, TraceEvent]
) -> Iterator[Subject]:
    """The tool cycles of a turn of *session*, then the turn; *ends* are the ends of the session's tool calls, by their ids."""
    if "tool_cycle" in kinds:
        yield from _tool_cycles(session, turn, ends)
    if "turn" in kinds:
        asked, said = turn.said()
        context = session.context
        if turn.feedback_after:
            context = {**context, "feedback_after_messages": list(turn.feedback_after)}
        trail = Trail(session.log, turn.ends)
        yield Subject("turn", turn.id, asked, said, None, context, turn.events, session.id, session.id, trail)


def session_subject(session: Session) -> Subject:
    """The session itself."""
    events, trail = tuple(session.events), Trail(session.log, len(session.log))
    return Subject("session", session.id, None, None, None, session.context, events, session.id, trail=trail)


def _ends(events: Iterable[TraceEvent]) -> dict[object, TraceEvent]:
    return {
        event.payload.get("tool_use_id"): event for event in events if event.type in ("tool.completed", "tool.failed")
    }


def _tool_cycles(session: Session, turn: Turn, ends: Mapping[object, TraceEvent]) -> Iterator[Subject]:
    calls = [event for event in turn.events if event.type == "tool.called"]
    place = turn.begins
    for number, call in enumerate(calls):
        while session.log[place] is not call:
            place += 1
        yield cycle_subject(session, turn.id, cycle_events(calls, number, ends), place)


def _unfinished(session: Session, ends: Mapping[object, TraceEvent]) -> Iterator[Subject]:
    """The calls that have ended in turns that have not; they are part of no turn that is judged."""
    completed = {turn.id for turn in session.turns}
    calls: dict[str, list[TraceEvent]] = {}
    places: dict[int, int] = {}
    for place, event in enumerate(session.log):
        if event.type == "tool.called" and event.turn_id is not None and event.turn_id not in completed:
            calls.setdefault(event.turn_id, []).append(event)
            places[id(event)] = place
    for made in calls.values():
        for number, call in enumerate(made):
            if call.payload["tool_use_id"] in ends:
                yield cycle_subject(session, None, cycle_events(made, number, ends), places[id(call)])


def cycle_events(calls: Sequence[TraceEvent], number: int, ends: Mapping[object, TraceEvent]) -> tuple[TraceEvent, ...]:
    """A call of a turn with its end and the calls that follow, by which thrashing is seen; :data:`FOLLOWING` at most."""
    call, following = calls[number], calls[number + 1 : number + 1 + FOLLOWING]
    end = ends.get(call.payload["tool_use_id"])
    return (call, *following) if end is None else (call, end, *following)


def cycle_subject(session: Session, turn_id: str | None, events: tuple[TraceEvent, ...], place: int) -> Subject:
    """A tool cycle of the turn *turn_id*; *events* are those of :func:`cycle_events`, *place* is the call's in the log."""
    call = events[0].payload
    id_ = call["tool_use_id"]
    ended = len(events) > 1 and events[1].type != "tool.called"
    asked = {"tool_name": call.get("tool_name"), "input": call.get("input")}
    result = _result(events[1] if ended else None)
    about, trail = (asked, result, None, session.context, events), Trail(session.log, place)
    return Subject("tool_cycle", str(id_), *about, session.id, turn_id, trail)


def _step(call: TraceEvent) -> dict[str, object]:
    """A call as a step of a history; its input may be known by its hash alone."""
    known = ("tool_name", "input") if "input" in call.payload else ("tool_name", "input_hash")
    return {key: call.payload[key] for key in known if key in call.payload}


def _result(end: TraceEvent | None) -> object:
    if end is None:
        return None
    return end.payload.get("output") if end.type == "tool.completed" else end.payload.get("error")
