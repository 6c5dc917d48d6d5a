"""Steps of a subject in the terminal: its messages, reasoning, tool calls and sub-agents, from the trace events of the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import orjson

from ...toolkit.parts import media_in
from ...toolkit.printable import short_name
from ...toolkit.sub_agents import STARTED, AgentPlace, SubAgents
from ..contract.protocols import Ledger
from ..events import SUBJECT_READ
from ..values import Event, Query

_TYPES = ("message.sent", "tool.called", "tool.completed", "tool.failed", "llm.call_failed", "turn.completed")
_SYSTEM = ("system", "developer")
_KINDS = ("tool_cycle", "turn", "session")

MOST_LEVELS = 6
"""Largest number of sub-agents inside each other whose steps are shown."""


@attrs.frozen
class Trace:
    """The recorded *events* of a subject, and the *agents* that it started: the place of each and its trace."""

    events: Sequence[Event] = ()
    agents: Sequence[tuple[AgentPlace, Trace]] = ()


@attrs.define
class _Step:
    """A text with the texts *below* it, the markers of its *media*, and the steps of the sub-agents that it started."""

    text: str
    below: list[str] = attrs.field(factory=list)
    media: Sequence[str] = ()
    inside: list[_Step] = attrs.field(factory=list)

    def lines(self, level: int) -> Iterator[str]:
        """Yield the texts by their lines, indented by the *level*, and a line for each marker that the texts lack."""
        missing = [marker for marker in self.media if all(marker not in text for text in (self.text, *self.below))]
        yield from _indented(self.text, level)
        for text in (*self.below, *missing):
            yield from _indented(text, level + 1)

    def is_message(self, role: str, text: object) -> bool:
        """Return whether the step is the message of *role* with this *text* and nothing else."""
        return not (self.below or self.inside) and self.text == f"{role}: {_text(text)}"


def whole_steps(trace: Trace, opening: object = None, closing: object = None) -> Iterator[str]:
    """Yield the lines of the steps of *trace*, without the messages of a system.

    A first step that is the user's message *opening*, and a last step that is the assistant's message *closing*, are left out.
    """
    if any(event.payload.keys() == {"digest"} for event in trace.events):
        yield "its steps were not recorded (a ledger with content: digest)"
    steps = _steps(trace)
    if steps and steps[0].is_message("user", opening):
        steps = steps[1:]
    if steps and steps[-1].is_message("assistant", closing):
        steps = steps[:-1]
    for level, step in _flat(steps):
        yield from step.lines(level)


def policy_of(trace: Trace) -> str:
    """Return the messages of the system in *trace*, an empty text without any."""
    texts = (_text(event.payload.get("text")) for event in trace.events if _is_policy(event))
    return "\n\n".join(filter(None, texts))


def trace(ledger: Ledger, subject_id: str, run_id: str) -> Trace:
    """Return the messages and tool calls of a turn, a tool cycle or a session, as they were recorded for the run *run_id*; else an empty trace."""
    query = Query(run_id, (SUBJECT_READ,), subject_id=subject_id, newest_first=True, limit=1)
    read = next((entry.event for entry in ledger.read(query)), None)
    if read is None or read.session_id is None or (kind := read.subject_kind) not in _KINDS:
        return Trace()
    recorded_by = str(read.payload.get("from_run") or run_id)
    agents = SubAgents.of(entry.event for entry in ledger.read(Query(recorded_by, (STARTED,))))

    def inside(places: Sequence[AgentPlace], levels: int) -> list[tuple[AgentPlace, Trace]]:
        return [(place, whole(place.session_id, levels - 1)) for place in places] if levels else []

    def whole(session_id: str, levels: int) -> Trace:
        events = _events(ledger, recorded_by, session_id)
        return Trace(events, inside(agents.places(session_id, events), levels))

    events = _events(ledger, recorded_by, read.session_id)
    places = agents.places_in(kind, subject_id, read.session_id, events)
    own = [at for at, event in enumerate(events) if _is_of(event, kind, subject_id)]
    policies = {at for at, event in enumerate(events[: own[-1]] if own else ()) if _is_policy(event)}
    return Trace([events[at] for at in sorted({*own, *policies})], inside(places, MOST_LEVELS))


def _events(ledger: Ledger, run_id: str, session_id: str) -> list[Event]:
    """Return the events of a session's trace, without the run's events of its subjects."""
    entries = ledger.read(Query(run_id, _TYPES, session_id=session_id))
    return [entry.event for entry in entries if entry.event.subject_kind is None]


def _is_policy(event: Event) -> bool:
    return event.type == "message.sent" and event.payload.get("role") in _SYSTEM


def _is_of(event: Event, kind: str, id: str) -> bool:
    if kind == "tool_cycle":
        return event.payload.get("tool_use_id") == id
    return kind == "session" or event.turn_id == id


def _flat(steps: Iterable[_Step], level: int = 0) -> Iterator[tuple[int, _Step]]:
    """Yield *steps* with the steps inside of each, each with its level."""
    for step in steps:
        yield level, step
        yield from _flat(step.inside, level + 1)


def _steps(trace: Trace) -> list[_Step]:
    steps: list[_Step] = []
    calls: dict[str, _Step] = {}
    turns: dict[str | None, _Step] = {}
    for event in trace.events:
        if event.payload.keys() != {"digest"}:
            _add_steps(event, steps, calls)
        if steps:
            turns[event.turn_id] = steps[-1]
    for place, inner in trace.agents:
        agent = _Step(f"sub-agent {short_name(place.session_id)}", inside=_steps(inner))
        around = turns.get(place.turn) if place.call is None else calls.get(place.call)
        (steps if around is None else around.inside).append(agent)
    return steps


def _add_steps(event: Event, steps: list[_Step], calls: dict[str, _Step]) -> None:
    """Add the steps of *event*; *calls* are the steps of calls by the call's id."""
    payload: Mapping[str, Any] = event.payload
    match event.type:
        case "message.sent":
            steps += _of_message(payload)
        case "turn.completed":
            texts = payload.get("signals_extra")
            final = texts.get("final_response_text") if isinstance(texts, Mapping) else None
            answer = _of_message({"role": "assistant", "text": final})
            steps += (step for step in answer if step not in steps[-1:])
        case "tool.called":
            arguments = f" {_text(payload['input'])}" if "input" in payload else ""
            step = _Step(f"call {payload.get('tool_name')}{arguments}", ["no result"])
            calls[str(payload.get("tool_use_id"))] = step
            steps.append(step)
        case "tool.completed" | "tool.failed":
            id = str(payload.get("tool_use_id"))
            if id not in calls:  # the trace has no event of the call
                calls[id] = _Step(f"call {payload.get('tool_name') or '(unknown)'}")
                steps.append(calls[id])
            step = calls[id]
            is_failed = event.type == "tool.failed" or payload.get("success") is False
            result = payload.get("error" if event.type == "tool.failed" else "output")
            step.below = [f"{'failed' if is_failed else 'returned'}: {_text(result)}".removesuffix(": ")]
            step.media = media_in(payload)
        case _:
            steps.append(_Step(f"the model's call failed: {_text(payload.get('error'))}"))


def _of_message(payload: Mapping[str, Any]) -> Iterator[_Step]:
    """Yield the reasoning and the text of a message. The message of a system is not a step."""
    if payload.get("role") in _SYSTEM:
        return
    for part in payload.get("parts") or ():
        if isinstance(part, Mapping) and part.get("type") == "reasoning" and part.get("text"):
            yield _Step(f"reasoning: {part['text']}")
    text, media = _text(payload.get("text")), media_in(payload)
    if text or media:
        yield _Step(f"{payload.get('role')}: {text}".rstrip(" "), media=media)


def _indented(text: str, level: int) -> Iterator[str]:
    """Yield *text* by its lines, indented; the lines after the first have a further indent."""
    for number, line in enumerate(text.split("\n")):
        yield f"{'  ' * (level + (number > 0))}{line}"


def _text(value: object) -> str:
    """Return a text unchanged, None as an empty text, any other JSON value as compact JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()
