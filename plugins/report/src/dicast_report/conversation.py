"""Conversations of a run's sessions, from the trace events of its ledger: messages and tool calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from dicast import RESERVED_AREAS, Event, Query
from dicast.toolkit.message_formats import message_text
from dicast.toolkit.sessions import shown_tool
from dicast.toolkit.sub_agents import STARTED, AgentPlace, SubAgents

from .media import items_in
from .subjects import Read
from .texts import as_text

Message = dict[str, Any]
Turn = dict[str, Any]

_SYSTEM = ("system", "developer")
_SESSIONS = 200
"""Most sessions that are queried one by one; for more the whole run is read."""


def conversations(read: Read, run_id: str, sessions: set[str], agents: SubAgents) -> dict[str, list[Turn]]:
    """Return the turns of those *sessions*, and of the sub-agents in them, for which the run recorded trace events.

    *agents* are the sub-agents of the run. Each is in the message of the call that started it, or a message of its own.
    """
    sessions = {*sessions, *(inner for session in sessions for inner in agents.inside(session))}
    events: dict[str, list[Event]] = {}
    for event in _traces(read, run_id, sessions):
        if event.session_id in sessions:
            events.setdefault(str(event.session_id), []).append(event)
    result = {session: turns for session, session_events in events.items() if (turns := _turns(session_events))}
    for session, turns in result.items():
        if places := agents.places(session, events[session]):
            _insert(turns, [place for place in places if place.session_id in result])
    return result


def sub_agents(read: Read, run_id: str) -> SubAgents:
    """Return the sub-agents of the run."""
    return SubAgents.of(entry.event for entry in read(Query(run_id, (STARTED,))))


def _insert(turns: list[Turn], places: Iterable[AgentPlace]) -> None:
    """Add each sub-agent to its call, else to its turn, else to the last turn."""
    calls = {entry["id"]: entry for turn in turns for entry in turn["messages"] if entry["kind"] == "call"}
    by_id = {turn["id"]: turn for turn in turns if turn["id"] is not None}
    for place in places:
        agent: Message = {"session": place.session_id}
        if place.call in calls:
            calls[place.call].setdefault("agents", []).append(agent)
        else:
            by_id.get(place.turn, turns[-1])["messages"].append({"kind": "agent", **agent})


def _traces(read: Read, run_id: str, sessions: set[str]) -> Iterator[Event]:
    few = len(sessions) <= _SESSIONS
    queries = [Query(run_id, session_id=session) for session in sorted(sessions)] if few else [Query(run_id)]
    for query in queries:
        for entry in read(query):
            fields = entry.event.payload.keys() - {"digest"}  # empty in a ledger that stores no content
            if fields and not entry.event.type.startswith(RESERVED_AREAS):
                yield entry.event


def _turns(events: Iterable[Event]) -> list[Turn]:
    """Return the events of one session by turn; events before the first turn belong to none."""
    groups: dict[str | None, list[Event]] = {}
    for event in events:
        groups.setdefault(event.turn_id, []).append(event)
    around = list(_Turn(groups.pop(None, [])).messages())
    opening = [message for message in around if message["kind"] != "note"]
    closing = [message for message in around if message["kind"] == "note"]
    turns: list[Turn] = [
        {"id": turn, "messages": list(_Turn(turn_events).messages())} for turn, turn_events in groups.items()
    ]
    all_turns = [{"id": None, "messages": opening}, *turns, {"id": None, "messages": closing}]
    return [turn for turn in all_turns if turn["messages"]]


@attrs.define
class _Turn:
    """Events of one turn. Messages repeated by a model's calls are shown once."""

    events: list[Event]
    _calls: dict[str, Message] = attrs.field(factory=dict)
    _seen: set[tuple[str, str]] = attrs.field(factory=set)

    def messages(self) -> Iterator[Message]:
        """Yield the user's message, the messages and calls of the turn, its final text, and notes on its end."""
        texts = self._texts()
        messages = [message for event in self.events for message in self._of(event)]
        prompt, final = (
            texts.get("user_prompt_text"),
            texts.get("final_response_text") or texts.get("assistant_response_text"),
        )
        policy = [entry for entry in messages if entry.get("role") in _SYSTEM]
        yield from policy
        if isinstance(prompt, str) and prompt and ("user", prompt) not in self._seen:
            yield _speech("user", prompt)
        yield from (entry for entry in messages if entry.get("role") not in _SYSTEM and entry["kind"] != "note")
        if isinstance(final, str) and final and not self._ends_with(messages, final):
            yield _speech("assistant", final)
        yield from (entry for entry in messages if entry["kind"] == "note")

    def _ends_with(self, messages: list[Message], final: str) -> bool:
        """Return whether *final* is shown already: as the last message, or earlier in a turn that did not end with an answer."""
        spoken = [message for message in messages if message["kind"] != "note"]
        stops = [event.payload.get("stop_reason") for event in self.events if event.type == "turn.completed"]
        is_last = bool(spoken) and spoken[-1].get("role") == "assistant"
        return ("assistant", final) in self._seen and (is_last or "end_turn" not in stops)

    def _texts(self) -> Mapping[str, object]:
        completed = [event.payload for event in self.events if event.type == "turn.completed"]
        texts = completed[-1].get("signals_extra") if completed else None
        return texts if isinstance(texts, Mapping) else {}

    def _of(self, event: Event) -> Iterator[Message]:
        payload: Mapping[str, Any] = event.payload
        match event.type:
            case "message.sent":
                extra = {**_reasoning(payload), **_media(payload)}
                messages = [*self._speak(payload.get("role"), payload.get("text"), again=True)]
                for message in messages or ([_speech(str(payload.get("role")), "")] if extra else []):
                    yield {**message, **extra}
            case "tool.called":
                yield self._call(payload)
            case "tool.completed" | "tool.failed":
                yield from self._end(event.type, payload)
            case "llm.call_completed":
                yield from self._input(payload.get("input"))
                yield from self._output(payload.get("output"))
            case "llm.call_failed":
                yield _note(f"the model's call failed: {as_text(payload.get('error'), 400)}")
            case "feedback.explicit" | "feedback.implicit":
                yield _note(f"{event.type.partition('.')[2]} feedback: {payload.get('rating') or payload.get('type')}")
            case "session.ended":
                yield _note(f"session ended: {payload.get('disposition')}")

    def _call(self, payload: Mapping[str, Any]) -> Message:
        id_ = str(payload.get("tool_use_id"))
        call: Message = {"kind": "call", "id": id_, "name": shown_tool(payload)}
        if "input" in payload:
            call["arguments"] = as_text(payload["input"]) or ""
        self._calls[id_] = call
        return call

    def _end(self, type_: str, payload: Mapping[str, Any]) -> Iterator[Message]:
        """Add the result to its call, which is yielded now if the trace has no event of the call."""
        failed = type_ == "tool.failed" or payload.get("success") is False
        call = self._calls.get(str(payload.get("tool_use_id")))
        if call is None:
            call = self._call(payload)
            yield call
        text = as_text(payload.get("error") if type_ == "tool.failed" else payload.get("output"))
        self._seen.add(("tool", text or ""))
        call["result"], call["failed"] = text or "", failed
        call |= _media(payload)

    def _input(self, value: object) -> Iterator[Message]:
        """Yield a model's input; from a list of messages only new ones."""
        messages = value.get("messages") if isinstance(value, Mapping) else value
        if isinstance(messages, list) and all(isinstance(item, Mapping) for item in messages):
            for message in messages:
                if message.get("role") not in ("tool", "function"):
                    yield from self._speak(message.get("role"), message_text(message))
        elif value is not None:
            yield from self._speak("model", as_text(value))

    def _output(self, value: object) -> Iterator[Message]:
        text = message_text(value) if isinstance(value, Mapping) else as_text(value)
        yield from self._speak("assistant", text, again=True)

    def _speak(self, role: object, text: object, *, again: bool = False) -> Iterator[Message]:
        if isinstance(text, str) and text and (again or (str(role), text) not in self._seen):
            self._seen.add((str(role), text))
            yield _speech(str(role), text)


def _speech(role: str, text: str) -> Message:
    return {"kind": "said", "role": role, "text": as_text(text)}


def _reasoning(payload: Mapping[str, Any]) -> Message:
    """Return the reasoning in the parts of a message as a member of it; empty if it has none."""
    parts = payload.get("parts") or ()
    texts = [
        as_text(part.get("text")) for part in parts if isinstance(part, Mapping) and part.get("type") == "reasoning"
    ]
    return {"reasoning": "\n\n".join(filter(None, texts))} if any(texts) else {}


def _media(payload: Mapping[str, Any]) -> Message:
    """Return the images, sounds and files of an event as a member of its message; empty if it has none."""
    items = items_in(payload)
    return {"media": items} if items else {}


def _note(text: str) -> Message:
    return {"kind": "note", "text": text}
