"""The history of a conversation, merged from spans that repeat its messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import orjson

from dicast.toolkit.conversations import Conversation
from dicast.toolkit.parts import Part, ReasoningPart, TextPart, ToolCall, ToolResult, visible_text

from .conventions.figures import Figures
from .conventions.message import Message
from .conventions.reading import ToolUse
from .conventions.values import parsed

_ACTIONS = (ToolCall, ToolResult)
_UNSPOKEN = (ToolCall, ToolResult, ReasoningPart)


@attrs.define(eq=False)
class Entry:
    """A message of the history with the time of its first span, and the *figures* of the call that wrote it.

    *error* is the failure of a call without an answer.
    """

    role: str
    parts: list[Part]
    time: str | None
    trace_id: str
    figures: Figures | None = None
    error: str | None = None
    _key: tuple[Any, ...] | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """The key of the message. It is computed once, unless it has contents that later spans complete."""
        key = self._key
        if key is None:
            key = key_of(self.role, self.parts)
            if all(part.id for part in self.parts if isinstance(part, _ACTIONS)):
                self._key = key
        return key


class History:
    """The messages of a conversation, each once, in the order of the spans. *users* is the number of the user's messages."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.users = 0
        self._places: dict[tuple[bool, str], int] = {}  # of calls (True) and results by their ids
        self._calls: dict[str, ToolCall] = {}
        self._results: dict[str, ToolResult] = {}
        self._used: set[int] = set()  # ids of the calls with a span of a tool
        self._answered: set[int] = set()  # ids of the calls with a result
        self._of_spans: set[int] = set()  # ids of the results from spans of tools
        self._traces: set[str] = set()

    def add_inputs(self, messages: Sequence[Message], time: str | None, trace_id: str) -> None:
        """Add the messages that a model received, without messages that are in the history."""
        place, is_first = 0, trace_id not in self._traces
        new: list[Message] = []
        for message in messages:
            match = self._find(message, place)
            if match is None:
                new.append(message)
            else:
                place = match + 1
                self._complete(message)
        self._traces.add(trace_id)
        if not new and is_first and messages and messages[-1].role == "user" and self._has_answer(place):
            new = [messages[-1]]  # the same message in another trace is a new message
        for message in new:
            self._append(message, time, trace_id, None)

    def add_outputs(self, messages: Sequence[Message], time: str | None, trace_id: str, figures: Figures) -> None:
        """Add the answers of a model."""
        for number, message in enumerate(messages):
            call_figures = figures if number == 0 else None
            if number == 0 and message.stop_reason and message.stop_reason != figures.stop_reason:
                call_figures = figures.stopped(message.stop_reason)
            self._append(message, time, trace_id, call_figures)

    def add_missing_outputs(self, messages: Sequence[Message], time: str | None, trace_id: str) -> None:
        """Add the answers of an agent, without answers of its models that are in the history."""
        for message in messages:
            if self._find(message, 0) is None:
                self._append(message, time, trace_id, None)

    def add_call(self, figures: Figures, time: str | None, trace_id: str) -> None:
        """Add a call of a model whose messages are unknown."""
        self.entries.append(Entry("", [], time, trace_id, figures))

    def add_failure(self, figures: Figures, error: str, time: str | None, trace_id: str) -> None:
        """Add a call of a model that failed with the text *error*."""
        self.entries.append(Entry("", [], time, trace_id, figures, error))

    def call_tool(self, use: ToolUse, time: str | None, trace_id: str, span_id: str) -> ToolCall:
        """Return the call of a tool's span; it is added if no model has requested it."""
        call = self._calls.get(use.id or "") or self._open_call(use)
        if call is None:
            call = ToolCall(use.id, use.name, use.arguments)
            self._append(Message("assistant", [call]), time, trace_id, None)
        elif call.arguments is None:
            call.arguments = use.arguments
        call.span = call.span or {"trace_id": trace_id, "span_id": span_id}
        self._used.add(id(call))
        return call

    def end_tool(self, call: ToolCall, use: ToolUse, time: str | None, trace_id: str) -> None:
        """Add the result in the span of a tool, unless the history has it."""
        failed = use.error is not None
        earlier = self._results.get(call.id) if call.id else None
        if earlier is not None:
            earlier.is_error = earlier.is_error or failed
            if earlier.content is None:
                earlier.content = use.result
            return
        if not use.has_result and not failed:
            return
        content = use.result if use.has_result else use.error
        result = ToolResult(call.id or use.id, content, use.name, failed)
        self._of_spans.add(id(result))
        self._append(Message("tool", [result]), time, trace_id, None)
        self._answered.add(id(call))

    def add_to(self, conversation: Conversation) -> None:
        """Add the history to *conversation*."""
        for entry in self.entries:
            figures = entry.figures
            if entry.role not in ("system", "user") and not conversation.has_turns:
                conversation.start_turn()
            if entry.error is not None:
                model = None if figures is None else figures.model
                conversation.model_failure(entry.error, model=model, time=entry.time)
            elif figures is not None:
                conversation.model_call(
                    model=figures.model,
                    usage=figures.usage,
                    cost_usd=figures.cost_usd,
                    stop_reason=figures.stop_reason,
                    time=entry.time,
                    is_unread=not entry.role,
                )
            if entry.role:
                conversation.add(entry.role, entry.parts, time=entry.time)

    @property
    def has_messages(self) -> bool:
        """True if there is a message."""
        return any(entry.role for entry in self.entries)

    @property
    def ends_with_failure(self) -> bool:
        """True if the last entry is a failed call of a model."""
        return bool(self.entries) and self.entries[-1].error is not None

    @property
    def ends_with_answer(self) -> bool:
        """True if the last entry is a message of the assistant without a tool call."""
        last = self.entries[-1] if self.entries else None
        return (
            last is not None and last.role == "assistant" and not any(isinstance(part, ToolCall) for part in last.parts)
        )

    def _append(self, message: Message, time: str | None, trace_id: str, figures: Figures | None) -> None:
        """Add a message without calls and results that are in the history."""
        parts: list[Part] = []
        place = len(self.entries)
        for part in message.parts:
            if isinstance(part, ToolCall):
                if part.id and part.id in self._calls:
                    continue
                if part.id:
                    self._calls[part.id] = part
                    self._places[True, part.id] = place
            elif isinstance(part, ToolResult):
                if part.id and part.id in self._results:
                    self._merge(self._results[part.id], part)
                    continue
                if part.id:
                    self._results[part.id] = part
                    self._places[False, part.id] = place
            parts.append(part)
        if parts or not message.parts or figures is not None:
            role = message.role if parts or not message.parts else ""
            self.users += role == "user"
            self.entries.append(Entry(role, parts, time, trace_id, figures))

    def _complete(self, message: Message) -> None:
        """Complete results of the history with the content that a model received for them."""
        for part in message.parts:
            if isinstance(part, ToolResult) and part.id and (earlier := self._results.get(part.id)) is not None:
                self._merge(earlier, part)

    def _merge(self, earlier: ToolResult, again: ToolResult) -> None:
        """Complete a result. The content that a model received takes precedence over the value in the span of a tool."""
        earlier.is_error = earlier.is_error or again.is_error
        is_value = id(earlier) in self._of_spans and not earlier.is_error
        if earlier.content in (None, "") or (is_value and again.content not in (None, "")):
            earlier.content = again.content
            self._of_spans.discard(id(earlier))

    def _open_call(self, use: ToolUse) -> ToolCall | None:
        """Return the oldest call of the same tool without a span, preferably with the same arguments; None if there is none."""
        if use.id is not None:
            calls = [call for call in self._all_calls() if call.id is None]
        else:
            calls = self._all_calls()
        open_calls = [call for call in calls if call.name == use.name and id(call) not in self._used]
        equal = [call for call in open_calls if parsed(call.arguments) == parsed(use.arguments)]
        return next(iter(equal or open_calls), None)

    def _all_calls(self) -> list[ToolCall]:
        return [part for entry in self.entries for part in entry.parts if isinstance(part, ToolCall)]

    def _has_answer(self, place: int) -> bool:
        """Return whether an answer, a result or a failed call follows the entry before *place*."""
        later = self.entries[place:]
        return any(entry.role not in ("user", "system", "") or entry.error is not None for entry in later)

    def _find(self, message: Message, place: int) -> int | None:
        """Return the index of *message* in the history from *place* on, None if the history does not have it."""
        if place < len(self.entries) and _is_text(message.parts):  # the next message of a repeated history
            entry = self.entries[place]
            if entry.role == message.role != "system" and entry.parts == message.parts:
                return place
        if ids := _tool_ids(message):
            matches_all = [part_id in self._calls if is_call else part_id in self._results for is_call, part_id in ids]
            if all(matches_all) and len(ids) == sum(isinstance(part, _ACTIONS) for part in message.parts):
                return self._place_of(ids[-1], place)
        key = key_of(message.role, message.parts)
        start = 0 if message.role == "system" else place
        for number in range(start, len(self.entries)):
            entry = self.entries[number]
            if entry.role == message.role and entry.key == key:
                return number if message.role != "system" else place - 1
        return None

    def _place_of(self, id_: tuple[bool, str], place: int) -> int:
        return max(self._places.get(id_, -1), place - 1)


def _is_text(parts: Sequence[Part]) -> bool:
    return len(parts) == 1 and type(parts[0]) is TextPart


def _tool_ids(message: Message) -> list[tuple[bool, str]]:
    return [(isinstance(part, ToolCall), part.id) for part in message.parts if isinstance(part, _ACTIONS) and part.id]


def key_of(role: str, parts: Sequence[Part]) -> tuple[Any, ...]:
    """Return the key by which messages are compared: the visible text, the tool calls and the results, without reasoning."""
    spoken = [part for part in parts if not isinstance(part, _UNSPOKEN)]
    text = " ".join((visible_text(spoken) or "").split())
    actions = [_action(part) for part in parts if isinstance(part, _ACTIONS)]
    return (role, text, *actions)


def _action(part: ToolCall | ToolResult) -> tuple[object, ...]:
    if part.id:
        return (type(part).__name__, part.id)
    content = parsed(part.arguments if isinstance(part, ToolCall) else part.content)
    if isinstance(content, list) and content and isinstance(content[0], TextPart):
        content = visible_text(content)
    plain = content if isinstance(content, str) else orjson.dumps(content, default=str, option=orjson.OPT_SORT_KEYS)
    return (type(part).__name__, part.name, plain)
