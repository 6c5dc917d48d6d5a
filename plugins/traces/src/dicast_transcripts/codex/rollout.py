"""The session of a rollout file."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from itertools import chain

import attrs
import orjson

from dicast.toolkit.conversations import Conversation
from dicast.toolkit.parts import MediaPart, Part, ReasoningPart, TextPart, ToolCall, ToolResult
from dicast.toolkit.session_reading import SessionReading
from dicast.toolkit.sessions import Session

from ..values import Record, list_of, mapping_of, text_of, word_of
from .items import CONTEXT, ITEMS, Spoken
from .thread_items import read_thread_item

RECORDS = frozenset(
    ("session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state", "inter_agent_communication",
     "inter_agent_communication_metadata")
)  # fmt: skip
_THREAD = frozenset(
    (
        "thread.started",
        "turn.started",
        "turn.completed",
        "turn.failed",
        "item.started",
        "item.updated",
        "item.completed",
        "error",
    )
)
_TEXTS = (TextPart, ReasoningPart)
_SPAWN = "spawn_agent"
_SPOKEN = {
    "user_message": "user",
    "agent_message": "assistant",
    "agent_reasoning": "reasoning",
    "agent_reasoning_raw_content": "reasoning",
}
_EVENTS = frozenset(
    (
        "token_count", "task_started", "task_complete", "turn_started", "turn_complete", "context_compacted", "entered_review_mode",
        "exited_review_mode", "thread_goal_updated", "item_started", "item_completed", "sub_agent_activity", "warning",
        "background_event", "stream_error", "exec_command_begin", "exec_command_end", "exec_command_output_delta", "mcp_tool_call_begin",
        "mcp_tool_call_end", "patch_apply_begin", "patch_apply_updated", "patch_apply_end", "web_search_begin", "web_search_end",
        "image_generation_begin", "image_generation_end", "view_image_tool_call", "plan_update", "turn_diff", "session_configured", "shutdown_complete",
        "exec_approval_request", "apply_patch_approval_request", "agent_reasoning_section_break", "agent_message_delta", "agent_reasoning_delta",
        "thread_settings_applied", "model_reroute", "guardian_assessment", "guardian_warning", "dynamic_tool_call_request", "dynamic_tool_call_response",
        "collab_agent_spawn_begin", "collab_agent_spawn_end", "collab_agent_interaction_begin", "collab_agent_interaction_end", "collab_waiting_begin",
        "collab_waiting_end", "collab_close_begin", "collab_close_end", "collab_resume_begin", "collab_resume_end", "deprecation_notice",
        "request_user_input", "elicitation_request", "hook_started", "hook_completed", "mcp_startup_update", "mcp_startup_complete", "thread_name_updated",
        "undo_started", "undo_completed", "terminal_interaction", "raw_response_item", "list_skills_response", "skills_update_available",
    )
)  # fmt: skip
"""Events that add no message. An event at the end of a tool completes its result."""


_OTHER_ERRORS = ("thread_rollback_failed", "active_turn_not_steerable")
"""Kinds of errors of the user's commands, which do not end the turn."""


@attrs.define
class _Item:
    """A message, which is from an event if *is_event* is true, or a model call with its *usage*.

    *failure* is the error of a model call that failed, *stop* the reason why the turn was stopped; with *is_retry* a failed call is tried again.
    *has_words* is True for a response item that an event may repeat.
    """

    spoken: Spoken | None
    time: str | None
    is_event: bool = False
    has_words: bool = False
    usage: Record | None = None
    model: str | None = None
    failure: str | None = None
    stop: str | None = None
    is_retry: bool = False


@attrs.frozen
class _End:
    """The end of a tool in an event: the output, whether the tool failed, and the exit code. *place* is the number of items before it."""

    content: object
    is_error: bool = False
    exit_code: int | None = None
    place: int = 0


class Rollout:
    """Collects the records of a rollout file, which is one session."""

    def __init__(self, reading: SessionReading) -> None:
        self._reading = reading
        self._items: list[_Item] = []
        self._abandoned: list[list[_Item]] = []
        self._context: dict[str, object] = {}
        self._id: str | None = None
        self._parent: str | None = None
        self._model: str | None = None
        self._has_records = False
        self._error: str | None = None  # of a stream, which its turn may survive
        self._ends: dict[str, _End] = {}
        self._results: set[str | None] = set()
        self._spawns: dict[str | None, str | None] = {}  # the session of each call that started a sub-agent

    def add(self, record: Record, line: int) -> None:
        """Add the record on *line*."""
        type_, time = word_of(record, "type"), text_of(record, "timestamp")
        self._has_records = True
        payload = mapping_of(record, "payload")
        if "payload" not in record:
            self._add_bare(record, time)
        elif type_ == "response_item":
            self._add_item(payload, time)
        elif type_ == "event_msg":
            self._add_event(payload, time)
        elif type_ == "session_meta":
            self._add_meta(payload)
        elif type_ == "turn_context":
            self._count("turn_context")
            self._model = text_of(payload, "model") or self._model
        elif type_ == "compacted":
            self._count("compacted")
            if text := text_of(payload, "message"):
                self._items.append(_Item(Spoken(CONTEXT, [TextPart(text)]), time))
        elif type_ == "inter_agent_communication":
            self._count("inter_agent_communication")
            text = text_of(payload, "content", "message", "text")
            if text is not None:
                self._items.append(_Item(Spoken(CONTEXT, [TextPart(text)]), time))
        elif type_ in RECORDS:
            self._count(str(type_))
        else:
            self._reading.unknown("record type", record.get("type"), "type", tuple(RECORDS))

    def sessions(self) -> Iterator[Session]:
        """Yield the session, if there were records."""
        if not self._has_records:
            return
        if self._error is not None:
            self._fail(self._error, None)
        conversation = self._reading.conversation(self._id or self._reading.stem, self._parent)
        self._fill(conversation, [*self._items, *self._late_results()])
        for items in self._abandoned:
            abandoned = Conversation(conversation.id)
            self._fill(abandoned, items)
            self._reading.abandon(abandoned)
        yield self._reading.end(conversation, self._context)

    def _fill(self, conversation: Conversation, items: Sequence[_Item]) -> None:
        """Add *items* to *conversation*, without the events that repeat a response item."""
        texts = set(chain.from_iterable(map(_words, items)))
        for item in items:
            spoken = item.spoken
            if item.usage is not None or item.model is not None:
                conversation.model_call(model=item.model, usage=item.usage, time=item.time)
            if item.failure is not None:
                if item.time is None and not conversation.has_turns:  # a stream has no prompts
                    conversation.start_turn()
                conversation.model_failure(item.failure, model=self._model, time=item.time)
            if item.stop is not None:
                conversation.interruption(item.stop)
            if item.is_retry:
                conversation.retry()
            if spoken is None or (item.is_event and _is_repeated(spoken, texts)):
                continue
            if spoken.role == "assistant" and not conversation.has_turns:
                conversation.start_turn()
            parts = [self._completed(part) for part in spoken.parts] if self._ends or self._spawns else spoken.parts
            conversation.add(spoken.role, parts, time=item.time)

    def _late_results(self, place: int = 0) -> Iterator[_Item]:
        """Yield the results that only events have, from the item with the index *place* on."""
        for id_, end in self._ends.items():
            if end.place >= place and id_ not in self._results and end.content is not None:
                result = ToolResult(id_, end.content, is_error=end.is_error, exit_code=end.exit_code)
                yield _Item(Spoken("tool", [result]), None)

    def _roll_back(self, event: Record) -> None:
        """Move the last turns out of the session, as many as *event* names."""
        turns = event.get("num_turns")
        if type(turns) is not int or turns < 0:
            self._reading.unknown("number of turns that were rolled back", str(turns), "payload.num_turns")
            return
        starts = _turn_starts(self._items)
        if not starts or not turns or self._reading.keeps_abandoned:
            return
        place = starts[-min(turns, len(starts))]
        abandoned, late = self._items[place:], [*self._late_results(place)]
        self._abandoned.append([*abandoned, *late])
        self._results.update(id_ for id_, end in self._ends.items() if end.place >= place)
        del self._items[place:]

    def _add_bare(self, record: Record, time: str | None) -> None:
        """Add a record of ``codex exec --json``, or an item, which is a line in files of the first versions."""
        type_ = word_of(record, "type")
        if type_ in _THREAD:
            self._add_thread(record, str(type_))
        elif type_ in ITEMS:
            self._add_item(record, time)
        elif record.get("record_type") is not None:
            self._count(f"record_type {record['record_type']}")
        elif type_ is None and "id" in record and "timestamp" in record:
            self._add_meta(record)
        else:
            self._reading.unknown("record type" if type_ else "record", type_ or ", ".join(record)[:60], "type")

    def _add_thread(self, record: Record, type_: str) -> None:
        """Add an event of ``codex exec --json``."""
        self._count(type_)
        if type_ == "thread.started":
            self._id = self._id or text_of(record, "thread_id")
        elif type_ == "error":
            self._error = text_of(record, "message") or "unknown error"
        elif type_ == "turn.failed":
            self._fail(text_of(mapping_of(record, "error"), "message") or self._error, None)
            self._error = None
        elif type_ == "turn.completed":
            self._error = None
            self._items.append(_Item(None, None, usage=mapping_of(record, "usage") or None))
        elif type_ == "item.completed":
            for spoken in read_thread_item(mapping_of(record, "item"), self._reading):
                self._items.append(_Item(spoken, None))

    def _add_meta(self, meta: Record) -> None:
        self._count("session_meta")
        if self._id is not None:
            return  # a second record is about the earlier session that this one continues
        self._id = text_of(meta, "id", "session_id")
        source = mapping_of(mapping_of(meta, "source"), "subagent")
        self._parent = text_of(mapping_of(source, "thread_spawn"), "parent_thread_id") or text_of(
            meta, "parent_thread_id"
        )
        base = meta.get("base_instructions")
        instructions = (
            text_of(base, "text") if isinstance(base, dict) else text_of(meta, "base_instructions", "instructions")
        )
        if instructions:
            self._items.append(_Item(Spoken("system", [TextPart(instructions)]), text_of(meta, "timestamp")))
        keys = ("cwd", "originator", "cli_version", "model_provider", "git", "forked_from_id")
        self._context.update((key, meta[key]) for key in keys if meta.get(key))

    def _add_item(self, item: Record, time: str | None) -> None:
        type_ = item.get("type", "message" if "role" in item else None)
        reader = ITEMS.get(type_) if isinstance(type_, str) else None
        if reader is None:
            marker = self._reading.unknown("item", type_, "payload.type", tuple(ITEMS))
            self._items.append(_Item(Spoken("assistant", [marker]), time))
            return
        self._count(str(type_))
        spoken: Spoken | None = reader(item, self._reading)
        if spoken is None:
            return
        self._results.update(part.id for part in spoken.parts if type(part) is ToolResult)
        for part in spoken.parts:
            if type(part) is ToolCall and part.name == _SPAWN:
                self._spawns.setdefault(part.id, None)
        self._items.append(_Item(spoken, time, has_words=type_ in ("message", "reasoning")))

    def _add_event(self, event: Record, time: str | None) -> None:
        type_ = str(event.get("type"))
        if type_ in _SPOKEN:
            self._count(type_)
            self._items.append(_Item(_event_message(event, _SPOKEN[type_]), time, is_event=True))
        elif type_ == "token_count":
            self._count(type_)
            usage = mapping_of(mapping_of(event, "info"), "last_token_usage")
            if usage:
                self._items.append(_Item(None, time, usage=usage, model=self._model))
        elif type_ == "thread_rolled_back":
            self._count(type_)
            self._roll_back(event)
        elif type_ in ("error", "turn_aborted"):
            self._count(type_)
            self._add_failure(event, type_, time)
        elif type_ in _EVENTS:
            self._count(type_)
            if type_ == "stream_error":
                self._items.append(_Item(None, time, is_retry=True))
            if error := mapping_of(event, "error") if type_ in ("task_complete", "turn_complete") else {}:
                self._add_failure(error, "error", time)
            if type_ == "collab_agent_spawn_end" and (id_ := text_of(event, "call_id")) is not None:
                self._spawns[id_] = text_of(event, "new_thread_id")
            item = mapping_of(event, "item")
            if type_ == "item_completed" and item.get("type") == "Plan" and (plan := text_of(item, "text")):
                self._items.append(
                    _Item(Spoken("assistant", [TextPart(plan)]), time)
                )  # response items do not have plans
            if (end := _end_of(event, type_)) is not None and (id_ := text_of(event, "call_id")) is not None:
                self._ends[id_] = attrs.evolve(end, place=len(self._items))
        else:
            self._reading.unknown("event", event.get("type"), "payload.type", tuple(_EVENTS))

    def _add_failure(self, event: Record, type_: str, time: str | None) -> None:
        """Add an error that ended the turn, or the reason why the turn was stopped."""
        reason = text_of(event, "reason") or "aborted"
        info = event.get("codex_error_info")
        if type_ == "turn_aborted":
            self._items.append(_Item(None, time, stop=None if reason == "review_ended" else reason))
        elif not any(name in _OTHER_ERRORS for name in (info if isinstance(info, dict) else (info,))):
            self._fail(text_of(event, "message"), time)

    def _fail(self, error: str | None, time: str | None) -> None:
        """Add a failed call of the model, unless the event before has the same error."""
        failure = error or "unknown error"
        if not self._items or self._items[-1].failure != failure:
            self._items.append(_Item(None, time, failure=failure))

    def _completed(self, part: Part) -> Part:
        """Return *part*; if it is a result, add the session that the call started, and the failure and exit code from the event that ended the tool."""
        if isinstance(part, ToolResult) and part.id in self._spawns:
            part = attrs.evolve(part, session_id=self._spawns[part.id] or _started(part.content))
        if isinstance(part, ToolResult) and part.id in self._ends:
            end = self._ends[part.id]
            code = part.exit_code if part.exit_code is not None else end.exit_code
            return attrs.evolve(part, is_error=part.is_error or end.is_error, exit_code=code)
        return part

    def _count(self, kind: str) -> None:
        self._reading.totals.kinds[kind] += 1


def _words(item: _Item) -> Iterator[tuple[str, str]]:
    """Yield the texts of a response item, which an event may repeat, each with its role."""
    if not item.has_words or item.spoken is None:
        return
    parts = item.spoken.parts
    role = "reasoning" if any(type(part) is ReasoningPart for part in parts) else item.spoken.role
    texts = [part.text for part in parts if isinstance(part, _TEXTS)]
    for text in texts if len(texts) == 1 else {"\n".join(texts), *texts}:
        yield role, text.strip()


def _is_repeated(spoken: Spoken, texts: Container[tuple[str, str]]) -> bool:
    """Return whether one of the *texts* of response items is that of *spoken*, the message of an event."""
    role = "reasoning" if isinstance(spoken.parts[0], ReasoningPart) else spoken.role
    words = [part.text.strip() for part in spoken.parts if isinstance(part, _TEXTS)]
    return any((role, text) in texts or (CONTEXT, text) in texts for text in words)


def _turn_starts(items: Sequence[_Item]) -> list[int]:
    """Return the places of the messages that start a turn. An event and a response item with one message are one start, at the first of both."""
    starts: list[int] = []
    is_answered = True
    for place, item in enumerate(items):
        spoken = item.spoken
        if spoken is None or spoken.role != "user":
            is_answered = is_answered or (spoken is not None and spoken.role in ("assistant", "tool"))
            continue
        last = None if is_answered or not starts else items[starts[-1]]
        is_same = last is not None and last.is_event != item.is_event and _text(last) == _text(item)
        if not is_same:
            starts.append(place)
        is_answered = False
    return starts


def _text(item: _Item) -> str:
    parts = () if item.spoken is None else item.spoken.parts
    return "\n".join(part.text for part in parts if isinstance(part, TextPart)).strip()


def _started(content: object) -> str | None:
    """Return the id of the session in the result of a call that started a sub-agent, None without one."""
    try:
        value = orjson.loads(content) if isinstance(content, str) else content
    except orjson.JSONDecodeError:
        return None
    return text_of(value, "agent_id") if isinstance(value, dict) else None


def _event_message(event: Record, role: str) -> Spoken:
    text = text_of(event, "message", "text") or ""
    if role == "reasoning":
        return Spoken("assistant", [ReasoningPart(text)])
    images: list[Part] = [MediaPart("image", url=url) for url in list_of(event, "images") if isinstance(url, str)]
    parts: list[Part] = [TextPart(text), *images]
    is_injected = role == "user" and event.get("kind") in ("environment_context", "user_instructions")
    return Spoken(CONTEXT if is_injected else role, parts)


def _end_of(event: Record, type_: str) -> _End | None:
    """Return the end of a tool that *event* records, None for other events."""
    if type_ == "exec_command_end":
        code = event.get("exit_code")
        output = text_of(event, "aggregated_output", "formatted_output", "stdout") or event.get("stderr") or ""
        return _End(output, exit_code=code if type(code) is int else None)
    if type_ == "patch_apply_end":
        return _End(text_of(event, "stdout", "stderr") or "", is_error=event.get("success") is False)
    if type_ == "mcp_tool_call_end":
        result = mapping_of(event, "result")
        failed = "Err" in result or mapping_of(result, "Ok").get("isError") is True
        return _End(result.get("Err", result.get("Ok")), is_error=failed)
    return None
