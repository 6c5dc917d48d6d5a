"""From a chat transcript in the OpenAI format to the events of a trace."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Protocol

import attrs
import orjson

from dicast import MISSING, DataError, Problem, TraceEvent, inexact, too_deep
from dicast.toolkit.sessions import MESSAGE, Session, Turn

_RESULTS = ("tool", "function")
_REPLIES = ("assistant", *_RESULTS)

NameCall = Callable[[str, str], str]
"""Gives a tool call's id in the trace, from the turn's id and the call's in the transcript."""


class Expression(Protocol):
    """A compiled regular expression."""

    def search(self, text: str) -> object | None:
        """Where it is found in *text*; None where it is not."""
        ...


@attrs.frozen
class Reader:
    """How a conversation is read: what marks a tool's failure, whether an unanswered turn counts, how calls are named."""

    tool_error: Expression | None
    keep_trailing: bool
    name_call: NameCall

    def session(self, session_id: str, record: dict[str, Any]) -> Session:
        """Read the conversation in *record*, whose ``messages`` are taken out of it.

        :raises DataError: (without a place) when it is not a conversation.
        """
        messages = _messages(record)
        log = [TraceEvent(MESSAGE, said, None, session_id) for said in _before_turns(messages)]
        turns, events = [], list[TraceEvent]()
        calls = _Calls()
        for number, own in enumerate(self._turns(messages), 1):
            begins = len(log)
            log += self._turn(f"{session_id}/{number}", session_id, own, calls)
            turn_events = tuple(event for event in log[begins:] if event.type != MESSAGE)
            turns.append(Turn(f"{session_id}/{number}", turn_events, (), begins, len(log)))
            events += turn_events
        ended = TraceEvent("session.ended", {"disposition": "completed"}, None, session_id)
        return Session(session_id, turns, (*events, ended), record, (*log, ended))

    def _turns(self, messages: Sequence[Mapping[str, Any]]) -> list[Sequence[Mapping[str, Any]]]:
        """The messages of each turn; those before the first user message belong to none."""
        starts = [place for place, message in enumerate(messages) if message["role"] == "user"]
        turns = [messages[start:end] for start, end in zip(starts, [*starts, len(messages)][1:], strict=True)]
        if turns and not self.keep_trailing and not any(message["role"] in _REPLIES for message in turns[-1]):
            turns.pop()
        return turns

    def _turn(
        self, turn_id: str, session_id: str, messages: Sequence[Mapping[str, Any]], calls: _Calls
    ) -> list[TraceEvent]:
        """What happened in a turn, and those of its messages that ``turn.completed`` does not have in their places."""

        def event(type_: str, payload: Mapping[str, object]) -> TraceEvent:
            return TraceEvent(type_, payload, None, session_id, turn_id)

        calls.start(lambda call_id: self.name_call(turn_id, call_id), turn_id)
        events = [event(*each) for message in messages[1:] for each in self._told(message, calls, messages[-1])]
        if events and (asked := _said(messages[0])) is not None:  # else turn.completed says it all
            events.insert(0, event(MESSAGE, asked))
        called = sum(each.type == "tool.called" for each in events)
        events.append(event("turn.completed", _completed(messages, called)))
        return events

    def _told(
        self, message: Mapping[str, Any], calls: _Calls, last: Mapping[str, Any]
    ) -> Iterator[tuple[str, dict[str, object]]]:
        """The events of a message: its text, unless it is the turn's *last*, and its tool calls or what came of one."""
        ends = message is last and message["role"] == "assistant" and not _tool_calls(message)
        if message["role"] not in _RESULTS and not ends and (said := _said(message)) is not None:
            yield MESSAGE, said
        if message["role"] == "assistant":
            for call in _tool_calls(message):
                yield "tool.called", calls.called(call)
        elif message["role"] in _RESULTS:
            text = _text(message) or ""
            payload = calls.ended(message)
            if self.tool_error is not None and self.tool_error.search(text):
                yield "tool.failed", {**payload, "error": text}
            else:
                size = len(text.encode())
                yield "tool.completed", {**payload, "success": True, "output_size": size, "output": text}


class _Calls:
    """The tool calls of one conversation: their ids, made unique, and which still wait for a result."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._open: dict[
            str, tuple[str, str]
        ] = {}  # id in the events -> (id in the transcript, tool name), oldest first

    def start(self, name: Callable[[str], str], turn_id: str) -> None:
        """Begin a turn, whose calls are named by *name*."""
        self._name, self._turn_id = name, turn_id

    def called(self, call: Mapping[str, Any]) -> dict[str, object]:
        """The payload of ``tool.called``."""
        function = call["function"]
        given = call.get("id") or f"{self._turn_id}/{len(self._used) + 1}"
        id_ = self._unique(given)
        self._open[id_] = (given, function["name"])
        input_, digest = _arguments(function.get("arguments"))
        return {"tool_use_id": id_, "tool_name": function["name"], "input_hash": digest, "input": input_}

    def ended(self, message: Mapping[str, Any]) -> dict[str, object]:
        """The call that a result belongs to: the one it names, else the oldest of its tool, else the oldest."""
        given, name = message.get("tool_call_id"), message.get("name")
        same_id = [id_ for id_, call in self._open.items() if call[0] == given]
        same_tool = [id_ for id_, call in self._open.items() if call[1] == name]
        match = next(iter(same_id or (not given and (same_tool or self._open)) or ()), None)
        if match is not None:
            return {"tool_use_id": match, "tool_name": self._open.pop(match)[1]}
        return {"tool_use_id": given or self._unique(f"{self._turn_id}/{len(self._used) + 1}"), "tool_name": name}

    def _unique(self, given: str) -> str:
        """A provider may use one id twice in a conversation: the second becomes ``id#2``."""
        name = id_ = self._name(given)
        times = 1
        while id_ in self._used:
            times += 1
            id_ = f"{name}#{times}"
        self._used.add(id_)
        return id_


def _completed(messages: Sequence[Mapping[str, Any]], called: int) -> dict[str, object]:
    texts = {} if (asked := _text(messages[0])) is None else {"user_prompt_text": asked}
    said = (_text(message) for message in reversed(messages) if message["role"] == "assistant")
    if (final := next((text for text in said if text), None)) is not None:
        texts["final_response_text"] = final
    last = messages[-1]
    ended = last["role"] == "assistant" and _text(last) and not _tool_calls(last)
    return {
        "stop_reason": "end_turn" if ended else "tool_use",
        "tool_call_count": called,
        "signals_extra": texts,
    }


def _text(message: Mapping[str, Any]) -> str | None:
    """A message's text, of all its parts that are text; None where it has none."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content
    parts = [part["text"] for part in content if isinstance(part.get("text"), str)]
    return "\n".join(parts) if parts else None


def _said(message: Mapping[str, Any]) -> dict[str, object] | None:
    """The payload of ``message.sent``; None of a message without text."""
    text = _text(message)
    return {"role": message["role"], "text": text} if text else None


def _before_turns(messages: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, object]]:
    """What was said before the first user message: the system's policy, as a rule."""
    for message in takewhile(lambda message: message["role"] != "user", messages):
        if message["role"] not in _RESULTS and (said := _said(message)) is not None:
            yield said


def _tool_calls(message: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    calls: Sequence[Mapping[str, Any]] | None = message.get("tool_calls")
    if calls:
        return calls
    return [{"function": message["function_call"]}] if message.get("function_call") else ()


def _arguments(given: object) -> tuple[object, str]:
    """A call's arguments as JSON where they are JSON that can be recorded, and the SHA-256 of their canonical form."""
    value = given
    if isinstance(given, str):
        text = given.encode()
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            value = MISSING
        if value is MISSING or too_deep(text, value) or inexact(text):
            return given, hashlib.sha256(text).hexdigest()
    return value, hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _messages(record: dict[str, Any]) -> Sequence[Mapping[str, Any]]:
    messages = record.pop("messages", None)
    if not isinstance(messages, list):
        raise DataError(Problem("a conversation needs 'messages', a list in the OpenAI chat format", path="messages"))
    for number, message in enumerate(messages):
        if wrong := _fault(message):
            raise DataError(Problem(wrong, path=f"messages[{number}]"))
    return messages


def _fault(message: object) -> str | None:
    """What keeps *message* from being one of the OpenAI chat format, None when nothing does."""
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        return "a message is an object with a 'role'"
    content = message.get("content")
    if isinstance(content, list):
        if not all(isinstance(part, dict) for part in content):
            return "each part of a message's 'content' is an object"
    elif not isinstance(content, str | None):
        return "a message's 'content' is a string, null or a list of parts"
    if not isinstance(message.get("tool_calls"), list | None):
        return "a message's 'tool_calls' is a list"
    if not all(_is_call(call) for call in _tool_calls(message)):
        return "a tool call has an 'id' and a 'function' with a 'name'"
    if not isinstance(message.get("tool_call_id"), str | None):
        return "a message's 'tool_call_id' is a string"
    return None


def _is_call(call: object) -> bool:
    if not isinstance(call, dict) or not isinstance(call.get("id"), str | None):
        return False
    function = call.get("function")
    return isinstance(function, dict) and isinstance(function.get("name"), str)
