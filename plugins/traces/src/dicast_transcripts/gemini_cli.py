"""Sessions of Gemini CLI: its chat files, JSON and JSON lines, its checkpoints, and recorded replies of the model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from dicast import DataError
from dicast.toolkit.beginning import Beginning
from dicast.toolkit.conversations import Conversation
from dicast.toolkit.detection import Detection
from dicast.toolkit.message_formats.gemini import read_gemini, read_part
from dicast.toolkit.parts import Part, ReasoningPart, TextPart, ToolCall, ToolResult, visible_text
from dicast.toolkit.session_reading import Failed, SessionReading
from dicast.toolkit.session_source import SessionSource
from dicast.toolkit.sessions import Session

from .values import Record, id_of, list_of, mapping_of, objects_of, text_of

_NOTES = ("info", "error", "warning")
_API_ERROR, _CANCELLED = "[API Error", "Request cancelled"
"""Starts of the program's texts about a failed call of the model, and about a turn that the user stopped."""
_FAILED = ("error", "cancelled", "canceled", "failed")
_FIELDS = ("projectHash", "startTime", "lastUpdated", "directories", "summary", "kind")


@attrs.frozen
class GeminiCli(SessionSource):
    """Sessions of Gemini CLI: its chat files (``session-*.json``, and ``session-*.jsonl`` of newer versions) and its checkpoints.

    In a JSON lines file, a later record of a message replaces the earlier one, and a rewind leaves messages out; both are counted. Messages of the
    program (``info``, ``error``, ``warning``) go into the evidence with the role ``context``. A file of recorded replies
    (``{"method": …, "response": […]}``) is one session, with a turn for each reply.
    """

    title = "a Gemini CLI session"

    @classmethod
    def detect(cls, beginning: Beginning) -> Detection | None:
        """Return the detection of a chat file."""
        is_chat = any(map(_is_chat, beginning.objects))
        return Detection(cls.title) if is_chat or any(map(_is_replies, beginning.objects)) else None

    def sessions(self, reading: SessionReading) -> Iterator[Session | Failed]:
        """Yield the session of one file."""
        chat, replies = _Chat(reading), None
        for _, line, record in reading.records(joins_messages=False):
            if "method" in record and "response" in record:
                replies = replies or reading.conversation(reading.stem)
                _add_reply(record, replies, reading)
            elif isinstance(record.get("messages"), list) and "sessionId" in record and not chat.is_empty:
                yield chat.session()
                chat = _Chat(reading)
                chat.add(record, line)
            else:
                chat.add(record, line)
        if not chat.is_empty:
            yield chat.session()
        if replies is not None:
            yield reading.end(replies)


def _is_chat(record: Record) -> bool:
    messages = record.get("messages")
    if "sessionId" in record and isinstance(messages, list):
        return not messages or any(
            m.get("type") in ("user", "gemini", *_NOTES) for m in messages if isinstance(m, dict)
        )
    if "sessionId" in record and ("projectHash" in record or "startTime" in record):
        return True
    return "history" in record and any("parts" in content for content in objects_of(record, "history"))


def _is_replies(record: Record) -> bool:
    return "method" in record and any("candidates" in chunk for chunk in _chunks(record))


def _chunks(record: Record) -> list[Record]:
    """Return the chunks of a recorded reply; a reply that was not streamed is one chunk."""
    response = record.get("response")
    return [response] if isinstance(response, dict) else objects_of(record, "response")


class _Chat:
    """Collects the messages of a chat file by their ids."""

    def __init__(self, reading: SessionReading) -> None:
        self._reading = reading
        self._meta: dict[str, Any] = {}
        self._messages: dict[object, Record] = {}
        self._history: list[Record] = []
        self._abandoned: list[Record] = []

    @property
    def is_empty(self) -> bool:
        return not (self._meta or self._messages or self._history)

    def add(self, record: Record, line: int) -> None:
        """Add the whole chat, or one record of a JSON lines file."""
        if "$rewindTo" in record:
            self._rewind(id_of(record, "$rewindTo"))
        elif isinstance(record.get("$set"), dict):
            self._reading.totals.kinds["$set"] += 1
            self._add_meta(record["$set"])
        elif "type" in record:
            self._upsert(record)
        elif "sessionId" in record:
            self._add_meta(record)
        elif "history" in record:
            self._history += objects_of(record, "history")
        else:
            self._reading.unknown("record", ", ".join(record)[:60], "")

    def session(self) -> Session:
        """Return the session."""
        id_ = text_of(self._meta, "sessionId") or self._reading.stem
        parent = self._reading.folder if self._meta.get("kind") == "subagent" else None
        conversation = self._reading.conversation(id_, parent)
        for number, content in enumerate(self._history):
            try:
                read_gemini(content, f"history[{number}]", self._reading.shapes, conversation)
            except DataError as error:
                conversation.add("context", [self._reading.malformed(error, "message")])
        for number, message in enumerate(self._messages.values()):
            _add_message(message, f"messages[{number}]", conversation, self._reading)
        if self._abandoned:
            abandoned = Conversation(conversation.id)
            for number, message in enumerate(self._abandoned):
                _add_message(message, f"messages[{number}]", abandoned, self._reading)
            self._reading.abandon(abandoned)
        return self._reading.end(conversation, {key: self._meta[key] for key in _FIELDS if key in self._meta})

    def _add_meta(self, record: Record) -> None:
        self._meta.update((key, value) for key, value in record.items() if key != "messages")
        for message in list_of(record, "messages"):
            if isinstance(message, dict):
                self._upsert(message)
            else:
                self._reading.unknown("message", type(message).__name__, "messages")

    def _upsert(self, message: Record) -> None:
        id_ = id_of(message, "id")
        id_ = f"message {len(self._messages)}" if id_ is None else id_
        if id_ in self._messages:
            self._reading.totals.kinds["replaced message"] += 1
        self._messages[id_] = message

    def _rewind(self, target: object) -> None:
        """Remove the message *target* and all later ones, or all messages if there is no such message."""
        self._reading.totals.kinds["$rewindTo"] += 1
        if self._reading.keeps_abandoned:
            return
        ids = list(self._messages)
        removed = ids[ids.index(target) if target in self._messages else 0 :]
        self._abandoned += [self._messages.pop(id_) for id_ in removed]


def _add_message(message: Record, path: str, conversation: Conversation, reading: SessionReading) -> None:
    type_, time = message.get("type"), text_of(message, "timestamp")
    parts = _content(message.get("content"), f"{path}.content", reading)
    reading.totals.kinds[str(type_) if type_ in ("user", "gemini", *_NOTES) else "unknown message"] += 1
    if type_ == "gemini":
        _add_answer(message, path, parts, conversation, reading)
    elif type_ == "user":
        conversation.add("user", parts, time=time)
    elif type_ in _NOTES:
        conversation.add("context", parts, time=time)
        text = visible_text([part for part in parts if not isinstance(part, ToolCall | ToolResult)]) or ""
        if type_ == "error" and text.startswith(_API_ERROR):
            conversation.model_failure(text, time=time)
        elif type_ == "info" and text.startswith(_CANCELLED):
            conversation.interruption("interrupted")
    else:
        marker = reading.unknown("message type", type_, f"{path}.type", ("user", "gemini", *_NOTES))
        conversation.add("context", [marker, *parts], time=time)


def _add_answer(
    message: Record, path: str, content: list[Part], conversation: Conversation, reading: SessionReading
) -> None:
    time = text_of(message, "timestamp")
    if not conversation.has_turns:
        conversation.start_turn()
    conversation.model_call(model=text_of(message, "model"), usage=mapping_of(message, "tokens") or None, time=time)
    thoughts: list[Part] = [
        ReasoningPart("\n".join(text for key in ("subject", "description") if (text := text_of(thought, key))))
        for thought in objects_of(message, "thoughts")
    ]
    calls: list[Part] = []
    results: list[Part] = []
    for number, call in enumerate(list_of(message, "toolCalls")):
        if not isinstance(call, dict) or text_of(call, "name", "displayName") is None:
            calls.append(reading.unknown("tool call", type(call).__name__, f"{path}.toolCalls[{number}]"))
            continue
        calls.append(ToolCall(text_of(call, "id"), text_of(call, "name", "displayName") or "", call.get("args")))
        if (result := _result(call, f"{path}.toolCalls[{number}]", reading)) is not None:
            results.append(result)
    spoken = [part for part in content if part != TextPart("")] if calls or thoughts else content
    conversation.add("assistant", [*thoughts, *spoken, *calls, *results], time=time)


def _result(call: Record, path: str, reading: SessionReading) -> ToolResult | None:
    """Return the recorded result of *call*, or None if it has no result and did not fail."""
    is_error = call.get("status") in _FAILED
    result = call.get("result")
    content: object = result
    if isinstance(result, list):
        responses = [mapping_of(part, "functionResponse") for part in result if isinstance(part, dict)]
        outputs = [mapping_of(response, "response") for response in responses if response]
        texts = [text_of(output, "output", "error") for output in outputs]
        content = "\n".join(text for text in texts if text) if any(texts) else _contents(result, path, reading)
        is_error = is_error or any("error" in output and "output" not in output for output in outputs)
    elif result is None:
        content = call.get("resultDisplay")
        if content is None and not is_error:
            return None
        content = call.get("status") if content is None else content
    return ToolResult(
        text_of(call, "id"), content, text_of(call, "name"), is_error, session_id=text_of(call, "agentId")
    )


def _contents(result: list[Any], path: str, reading: SessionReading) -> object:
    parts = _content(result, f"{path}.result", reading)
    plain = [part for part in parts if not isinstance(part, ToolCall | ToolResult)]
    return plain or result


def _content(content: object, path: str, reading: SessionReading) -> list[Part]:
    if content is None:
        return []
    if isinstance(content, str):
        return [TextPart(content)]
    blocks = content if isinstance(content, list) else [content]
    try:
        return [read_part(block, f"{path}[{number}]", reading.shapes) for number, block in enumerate(blocks)]
    except DataError as error:
        return [reading.malformed(error, "message")]


def _add_reply(record: Record, conversation: Conversation, reading: SessionReading) -> None:
    """Add a recorded reply, whose chunks are one answer, as a turn without a prompt. Only count replies without an answer, such as token counts."""
    chunks = _chunks(record)
    if not _is_replies(record):
        reading.totals.kinds["reply without an answer"] += 1
        return
    reading.totals.kinds["reply"] += 1
    conversation.start_turn()
    parts: list[Part] = []
    usage: Record = {}
    stop = None
    for number, chunk in enumerate(chunks):
        usage = mapping_of(chunk, "usageMetadata") or usage
        for candidate in objects_of(chunk, "candidates"):
            stop = text_of(candidate, "finishReason") or stop
            content = list_of(mapping_of(candidate, "content"), "parts")
            _join(parts, _content(content, f"response[{number}]", reading))
    model = next((text_of(chunk, "modelVersion") for chunk in chunks), None)
    conversation.model_call(model=model, usage=usage or None, stop_reason=stop)
    conversation.add("assistant", parts)


def _join(parts: list[Part], chunk: list[Part]) -> None:
    """Add the parts of *chunk* to *parts*; a text is joined with a text just before it."""
    for part in chunk:
        if part == TextPart(""):
            continue
        if type(part) is TextPart and parts and type(last := parts[-1]) is TextPart:
            parts[-1] = TextPart(last.text + part.text)
        else:
            parts.append(part)
