"""The conversations of a run's sessions, out of the trace events of its ledger: who said what, and which tools were called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from dicast import RESERVED_AREAS, Event, Query
from dicast.toolkit.dialects import message_text

from .media import items_in
from .texts import shown
from .told import Read

Message = dict[str, Any]
Turn = dict[str, Any]

_SYSTEM = ("system", "developer")
_SESSIONS = 200
"""Up to how many sessions are looked up one by one; beyond that all of the run is read."""


def conversations(read: Read, run_id: str, sessions: set[str]) -> dict[str, list[Turn]]:
    """The turns of each of the *sessions* that the run recorded trace events of."""
    events: dict[str, list[Event]] = {}
    for event in _traces(read, run_id, sessions):
        if event.session_id in sessions:
            events.setdefault(str(event.session_id), []).append(event)
    return {session: turns for session, those in events.items() if (turns := _turns(those))}


def _traces(read: Read, run_id: str, sessions: set[str]) -> Iterator[Event]:
    few = len(sessions) <= _SESSIONS
    queries = [Query(run_id, session_id=one) for one in sorted(sessions)] if few else [Query(run_id)]
    for query in queries:
        for entry in read(query):
            known = entry.event.payload.keys() - {"digest"}  # nothing, in a ledger that stores no content
            if known and not entry.event.type.startswith(RESERVED_AREAS):
                yield entry.event


def _turns(events: Iterable[Event]) -> list[Turn]:
    """The events of one session, turn by turn; what stands before the first belongs to none."""
    groups: dict[str | None, list[Event]] = {}
    for event in events:
        groups.setdefault(event.turn_id, []).append(event)
    around = list(_Turn(groups.pop(None, [])).messages())
    opening = [one for one in around if one["kind"] != "note"]
    ended = [one for one in around if one["kind"] == "note"]
    turns: list[Turn] = [{"id": turn, "messages": list(_Turn(those).messages())} for turn, those in groups.items()]
    whole = [{"id": None, "messages": opening}, *turns, {"id": None, "messages": ended}]
    return [turn for turn in whole if turn["messages"]]


@attrs.define
class _Turn:
    """The events of one turn. What a model's calls repeat is told once."""

    events: list[Event]
    _calls: dict[str, Message] = attrs.field(factory=dict)
    _seen: set[tuple[str, str]] = attrs.field(factory=set)

    def messages(self) -> Iterator[Message]:
        """What the user asked, what was said and done, what was said last, and how it ended."""
        texts = self._texts()
        found = [message for event in self.events for message in self._of(event)]
        asked, final = (
            texts.get("user_prompt_text"),
            texts.get("final_response_text") or texts.get("assistant_response_text"),
        )
        policy = [one for one in found if one.get("role") in _SYSTEM]
        yield from policy
        if isinstance(asked, str) and asked and ("user", asked) not in self._seen:
            yield _said("user", asked)
        yield from (one for one in found if one.get("role") not in _SYSTEM and one["kind"] != "note")
        if isinstance(final, str) and final and not self._ends_with(found, final):
            yield _said("assistant", final)
        yield from (one for one in found if one["kind"] == "note")

    def _ends_with(self, found: list[Message], final: str) -> bool:
        """Whether *final* is said already: last of all, or the turn did not end with it."""
        spoken = [one for one in found if one["kind"] != "note"]
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
                for message in self._speak(payload.get("role"), payload.get("text"), again=True):
                    yield {**message, **_media(payload)}
            case "tool.called":
                yield self._call(payload)
            case "tool.completed" | "tool.failed":
                yield from self._end(event.type, payload)
            case "llm.call_completed":
                yield from self._asked(payload.get("input"))
                yield from self._answered(payload.get("output"))
            case "llm.call_failed":
                yield _note(f"the model's call failed: {shown(payload.get('error'), 400)}")
            case "feedback.explicit" | "feedback.implicit":
                yield _note(f"{event.type.partition('.')[2]} feedback: {payload.get('rating') or payload.get('type')}")
            case "session.ended":
                yield _note(f"session ended: {payload.get('disposition')}")

    def _call(self, payload: Mapping[str, Any]) -> Message:
        id_ = str(payload.get("tool_use_id"))
        call: Message = {"kind": "call", "id": id_, "name": str(payload.get("tool_name"))}
        if "input" in payload:
            call["arguments"] = shown(payload["input"]) or ""
        self._calls[id_] = call
        return call

    def _end(self, type_: str, payload: Mapping[str, Any]) -> Iterator[Message]:
        """Put what a call came to beside it; a call that was not told of is told of now."""
        failed = type_ == "tool.failed" or payload.get("success") is False
        call = self._calls.get(str(payload.get("tool_use_id")))
        if call is None:
            call = self._call(payload)
            yield call
        text = shown(payload.get("error") if type_ == "tool.failed" else payload.get("output"))
        self._seen.add(("tool", text or ""))
        call["result"], call["failed"] = text or "", failed
        call |= _media(payload)

    def _asked(self, value: object) -> Iterator[Message]:
        """What a model was given: of a list of messages those that are not known yet."""
        messages = value.get("messages") if isinstance(value, Mapping) else value
        if isinstance(messages, list) and all(isinstance(each, Mapping) for each in messages):
            for message in messages:
                if message.get("role") not in ("tool", "function"):
                    yield from self._speak(message.get("role"), message_text(message))
        elif value is not None:
            yield from self._speak("model", shown(value))

    def _answered(self, value: object) -> Iterator[Message]:
        text = message_text(value) if isinstance(value, Mapping) else shown(value)
        yield from self._speak("assistant", text, again=True)

    def _speak(self, role: object, text: object, *, again: bool = False) -> Iterator[Message]:
        if isinstance(text, str) and text and (again or (str(role), text) not in self._seen):
            self._seen.add((str(role), text))
            yield _said(str(role), text)


def _said(role: str, text: str) -> Message:
    return {"kind": "said", "role": role, "text": shown(text)}


def _media(payload: Mapping[str, Any]) -> Message:
    """Return the images, sounds and files of an event, as a member of its message; nothing if it has none."""
    items = items_in(payload)
    return {"media": items} if items else {}


def _note(text: str) -> Message:
    return {"kind": "note", "text": text}
