"""A session of an agent with its turns, and the subjects that it makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import attrs

from dicast import ConfigError, Problem, Subject, TraceEvent

Kind = Literal["tool_cycle", "turn", "session"]
KINDS: tuple[Kind, ...] = ("tool_cycle", "turn", "session")
"""What a session can be judged by, finest first."""


def chosen(subjects: Sequence[Kind]) -> tuple[Kind, ...]:
    """The *subjects* a source was asked for, finest first.

    :raises ConfigError: when there are none, or one that does not exist.
    """
    if not subjects or (unknown := [kind for kind in subjects if kind not in KINDS]):
        what = f"unknown subject kind {unknown[0]!r}" if subjects else "no subject kinds"
        raise ConfigError(Problem(f"{what}; choose from {', '.join(KINDS)}", path="subjects"))
    return tuple(kind for kind in KINDS if kind in subjects)


@attrs.frozen
class Turn:
    """A completed turn: its *events* in order, what the user asked, what the assistant said last.

    *feedback_after* says of each feedback event among them how many later turns had begun when it was given.
    """

    id: str
    events: tuple[TraceEvent, ...]
    feedback_after: tuple[int, ...] = ()

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
    """A session: its completed *turns*, and all its *events*; *context* is what else is known of it."""

    id: str
    turns: Sequence[Turn]
    events: tuple[TraceEvent, ...]
    context: Mapping[str, object]


def subjects(session: Session, kinds: Sequence[Kind], *, history: bool = False) -> Iterator[Subject]:
    """The tool cycles of a turn, then the turn, for one turn after the other, and the session last.

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
        yield Subject("turn", turn.id, asked, said, None, context, turn.events, session.id, session.id)


def session_subject(session: Session) -> Subject:
    """The session itself."""
    return Subject("session", session.id, context=session.context, events=session.events, session_id=session.id)


def _ends(events: Iterable[TraceEvent]) -> dict[object, TraceEvent]:
    return {
        event.payload.get("tool_use_id"): event for event in events if event.type in ("tool.completed", "tool.failed")
    }


def _tool_cycles(session: Session, turn: Turn, ends: Mapping[object, TraceEvent]) -> Iterator[Subject]:
    """Each call with its end and the calls that follow it in the turn, by which thrashing is seen."""
    calls = [event for event in turn.events if event.type == "tool.called"]
    for number, call in enumerate(calls):
        id_ = call.payload["tool_use_id"]
        end = ends.get(id_)
        asked = {"tool_name": call.payload.get("tool_name"), "input": call.payload.get("input")}
        events = (call, *calls[number + 1 :]) if end is None else (call, end, *calls[number + 1 :])
        yield Subject("tool_cycle", str(id_), asked, _result(end), None, session.context, events, session.id, turn.id)


def _step(call: TraceEvent) -> dict[str, object]:
    """A call as a step of a history; its input may be known by its hash alone."""
    known = ("tool_name", "input") if "input" in call.payload else ("tool_name", "input_hash")
    return {key: call.payload[key] for key in known if key in call.payload}


def _result(end: TraceEvent | None) -> object:
    if end is None:
        return None
    return end.payload.get("output") if end.type == "tool.completed" else end.payload.get("error")
