"""Sessions of an agent with their turns, and the subjects of a session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import attrs

from dicast import ConfigError, Due, Problem, RecordedScore, Subject, TraceEvent, Trail

Kind = Literal["tool_cycle", "turn", "session"]
KINDS: tuple[Kind, ...] = ("tool_cycle", "turn", "session")
"""The kinds of subjects in a session, finest first."""

FOLLOWING = 20
"""The most later calls of its turn that a tool cycle holds. With all of them, the work would grow with the square of their number."""

MESSAGE = "message.sent"
"""The event type of a message. Messages are in the log of a session only, and not among the events of its subjects."""

UNKNOWN_TOOL = "unknown tool"
"""The shown name of the tool of a result without a call."""


def shown_tool(payload: Mapping[str, object]) -> str:
    """Return the name of the tool in the *payload* of a call or its end for a reader; :data:`UNKNOWN_TOOL` if it has none."""
    name = payload.get("tool_name")
    return UNKNOWN_TOOL if name is None or name == "" else str(name)


def chosen(subjects: Sequence[Kind]) -> tuple[Kind, ...]:
    """Return the option *subjects* of a source in the order of :data:`KINDS`.

    :raises ConfigError: if it is empty or names an unknown kind.
    """
    if not subjects or (unknown := [kind for kind in subjects if kind not in KINDS]):
        fault = f"unknown subject kind {unknown[0]!r}" if subjects else "no subject kinds"
        raise ConfigError(Problem(f"{fault}; choose from {', '.join(KINDS)}", path="subjects"))
    return tuple(kind for kind in KINDS if kind in subjects)


@attrs.frozen
class Turn:
    """A completed turn with its *events* in order.

    *begins* and *ends* are its range in the log of the session. *feedback_after* holds for each feedback event of the turn the number of
    later turns that had started before the feedback.
    """

    id: str
    events: tuple[TraceEvent, ...]
    feedback_after: tuple[int, ...] = ()
    begins: int = 0
    ends: int = 0

    def texts(self) -> tuple[object, object]:
        """Return the user's text (None if unknown) and the assistant's last text (empty if there is none)."""
        completed = next(event for event in reversed(self.events) if event.type == "turn.completed")
        texts = completed.payload.get("signals_extra")
        if not isinstance(texts, Mapping):
            return None, ""
        finals = [str(texts.get(key) or "") for key in ("final_response_text", "assistant_response_text")]
        return texts.get("user_prompt_text"), next((text for text in finals if text.strip()), finals[0] or finals[1])


@attrs.frozen
class Session:
    """A session with its completed *turns* and all its *events*.

    *context* has the other fields of its record. *log* has everything that happened, in order: the events and the messages. *parent_id* is
    the id of the session that started this one, for a sub-agent. *reference* is the expected result of the session, and *recorded* are the scores
    that another tool gave to it. *place* is its file, and its first line if the file has several sessions.
    """

    id: str
    turns: Sequence[Turn]
    events: Sequence[TraceEvent]
    context: Mapping[str, object]
    log: Sequence[TraceEvent]
    parent_id: str | None = None
    reference: object = None
    recorded: tuple[RecordedScore, ...] = ()
    place: str | None = None


def scored_subjects(session: Session, kinds: Sequence[Kind], *, history: bool = False) -> Iterator[Subject | Due]:
    """Yield the subjects of *session* as :func:`subjects` does, with its reference and recorded scores on the session's subject.

    If *kinds* has no ``session``, they are on the last turn, which holds the final answer.
    """
    place = "session", session.id
    if "session" not in kinds and session.turns:
        place = "turn", session.turns[-1].id
    for subject in subjects(session, kinds, history=history):
        if (subject.kind, subject.id) != place or (session.reference is None and not session.recorded):
            yield subject
        else:
            yield Due(attrs.evolve(subject, reference=session.reference), recorded=session.recorded)


def subjects(session: Session, kinds: Sequence[Kind], *, history: bool = False) -> Iterator[Subject]:
    """Yield the subjects of *session*: for each turn its tool cycles and itself, then calls of unfinished turns, then the session.

    With *history*, the context of a tool cycle has all earlier calls of the session, as ``execution_history``.
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
    """Yield the tool cycles of *turn*, then the turn. *ends* maps the ids of the session's tool calls to the events that end them."""
    if "tool_cycle" in kinds:
        yield from _tool_cycles(session, turn, ends)
    if "turn" in kinds:
        prompt, answer = turn.texts()
        context = session.context
        if turn.feedback_after:
            context = {**context, "feedback_after_messages": list(turn.feedback_after)}
        trail = Trail(session.log, turn.ends)
        parts = turn.id, prompt, answer, None, context, turn.events, session.id, session.id, trail
        yield Subject("turn", *parts, place=session.place)


def session_subject(session: Session) -> Subject:
    """Return *session* as a subject."""
    events, trail = tuple(session.events), Trail(session.log, len(session.log))
    parts = session.id, None, None, None, session.context, events, session.id, session.parent_id, trail
    return Subject("session", *parts, place=session.place)


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
    """Yield the ended calls of turns that did not complete."""
    completed = {turn.id for turn in session.turns}
    calls: dict[str, list[TraceEvent]] = {}
    places: dict[int, int] = {}
    for place, event in enumerate(session.log):
        if event.type == "tool.called" and event.turn_id is not None and event.turn_id not in completed:
            calls.setdefault(event.turn_id, []).append(event)
            places[id(event)] = place
    for turn_calls in calls.values():
        for number, call in enumerate(turn_calls):
            if call.payload["tool_use_id"] in ends:
                yield cycle_subject(session, None, cycle_events(turn_calls, number, ends), places[id(call)])


def cycle_events(calls: Sequence[TraceEvent], number: int, ends: Mapping[object, TraceEvent]) -> tuple[TraceEvent, ...]:
    """Return a call of a turn, its end, and at most :data:`FOLLOWING` later calls, which show thrashing."""
    call, following = calls[number], calls[number + 1 : number + 1 + FOLLOWING]
    end = ends.get(call.payload["tool_use_id"])
    return (call, *following) if end is None else (call, end, *following)


def cycle_subject(session: Session, turn_id: str | None, events: tuple[TraceEvent, ...], place: int) -> Subject:
    """Return a tool cycle of the turn *turn_id*. *events* come from :func:`cycle_events`; *place* is the call's index in the log.

    A call from a span has this span in its context, in place of the spans of the session's turns.
    """
    call = events[0].payload
    id_ = call["tool_use_id"]
    has_end = len(events) > 1 and events[1].type != "tool.called"
    request = {"tool_name": call.get("tool_name"), "input": call.get("input")}
    result = _result(events[1] if has_end else None)
    span = call.get("span")
    context = session.context if span is None else {**session.context, "otel": {"spans": [span]}}
    content, trail = (request, result, None, context, events), Trail(session.log, place)
    return Subject("tool_cycle", str(id_), *content, session.id, turn_id, trail, place=session.place)


def _step(call: TraceEvent) -> dict[str, object]:
    """Return a call as a step of a history; its input may be known only by its hash."""
    keys = ("tool_name", "input") if "input" in call.payload else ("tool_name", "input_hash")
    return {key: call.payload[key] for key in keys if key in call.payload}


def _result(end: TraceEvent | None) -> object:
    if end is None:
        return None
    return end.payload.get("output") if end.type == "tool.completed" else end.payload.get("error")
