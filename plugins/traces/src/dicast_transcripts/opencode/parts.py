"""Converts the messages of a session with their parts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from dicast.toolkit.conversations import Conversation
from dicast.toolkit.parts import MediaPart, Part, ReasoningPart, TextPart, ToolCall, ToolResult
from dicast.toolkit.roles import role_of
from dicast.toolkit.session_reading import SessionReading
from dicast.toolkit.sessions import Session

from ..values import Record, mapping_of, objects_of, text_of, word_of

_SILENT = frozenset(("step-start", "step-finish", "snapshot", "patch", "agent", "retry", "compaction"))
"""Types of parts without a text."""

_FIELDS = ("title", "directory", "version", "projectID", "time", "agent")
_STOPS = {"MessageAbortedError": "interrupted", "MessageOutputLengthError": "max_tokens"}
"""Stop reasons of the errors that are no failure of the model."""


def read_session(info: Record, messages: Iterable[Record], reading: SessionReading) -> Session:
    """Return the session *info* with its *messages*, each with its own ``info`` and ``parts``."""
    conversation = reading.conversation(text_of(info, "id") or reading.stem, text_of(info, "parentID", "parent_id"))
    for number, message in enumerate(messages):
        add_message(
            mapping_of(message, "info"), objects_of(message, "parts"), f"messages[{number}]", conversation, reading
        )
    return reading.end(conversation, {key: info[key] for key in _FIELDS if info.get(key)})


def add_message(
    info: Record, blocks: Iterable[Record], path: str, conversation: Conversation, reading: SessionReading
) -> None:
    """Add one message."""
    reading.totals.kinds["message"] += 1
    role = role_of(info.get("role"))
    time = _time(mapping_of(info, "time").get("created"))
    parts: list[Part] = [] if role is not None else [reading.shapes.unknown_role(info.get("role"), path)]
    is_retried = False
    for number, block in enumerate(blocks):
        parts += read_part(block, f"{path}.parts[{number}]", reading)
        if (type_ := word_of(block, "type")) == "retry" or type_ not in _SILENT:
            is_retried = type_ == "retry"
    if role == "assistant":
        if not conversation.has_turns:
            conversation.start_turn()
        model = mapping_of(info, "model")
        name = text_of(info, "modelID") or text_of(model, "modelID")
        usage = mapping_of(info, "tokens") or None
        stop = text_of(info, "finish")
        conversation.model_call(model=name, usage=usage, cost_usd=info.get("cost"), stop_reason=stop, time=time)
    error = mapping_of(info, "error") if role == "assistant" else {}
    words = f"{error.get('name')}: {text_of(mapping_of(error, 'data'), 'message') or ''}"
    if error and not parts:
        conversation.add("context", [TextPart(words)], time=time)
    elif parts:
        conversation.add(role or str(info.get("role")), parts, time=time)
    if error:
        add_error(error, words, conversation, time)
    elif is_retried:
        conversation.retry()


def add_error(error: Record, words: str, conversation: Conversation, time: str | None = None) -> None:
    """Add the *error* of an answer: a failed call of the model with the text *words*, or the reason why the turn was stopped."""
    stop = _STOPS.get(text_of(error, "name") or "")
    if stop is None:
        conversation.model_failure(words, time=time)
    else:
        conversation.interruption(stop)


def read_part(block: Record, path: str, reading: SessionReading) -> list[Part]:
    """Return the parts in *block*: a text, media, or a call and its result."""
    type_ = word_of(block, "type")
    match type_:
        case "text" if isinstance(block.get("text"), str):
            return [TextPart(block["text"])]
        case "reasoning":
            return [ReasoningPart(text_of(block, "text") or "")]
        case "file":
            return [_file(block)]
        case "subtask":
            return [TextPart(text_of(block, "prompt", "description") or "")]
        case "tool" if text_of(block, "tool") is not None:
            return _tool(block)
    if type_ in _SILENT:
        reading.totals.kinds[str(type_)] += 1
        return []
    return [
        reading.unknown("part", block.get("type"), path, ("text", "reasoning", "file", "subtask", "tool", *_SILENT))
    ]


def _file(block: Record) -> MediaPart:
    mime, url = text_of(block, "mime"), text_of(block, "url")
    kind = "image" if (mime or "").startswith("image/") else "audio" if (mime or "").startswith("audio/") else "file"
    return MediaPart(kind, mime, url=url, name=text_of(block, "filename"))  # type: ignore[arg-type]  # one of the kinds


def _tool(block: Record) -> list[Part]:
    state = mapping_of(block, "state")
    id_, name, status = text_of(block, "callID", "id"), text_of(block, "tool") or "", state.get("status")
    call = ToolCall(id_, name, state.get("input"))
    child = text_of(mapping_of(state, "metadata"), "sessionId", "sessionID")
    if status == "error":
        error = text_of(state, "error") or state.get("output")
        return [call, ToolResult(id_, error, name, is_error=True, session_id=child)]
    if status != "completed" and "output" not in state:
        return [call]
    code = mapping_of(state, "metadata").get("exit")
    attachments: list[Part] = [_file(item) for item in objects_of(state, "attachments")]
    output = text_of(state, "output") or ""
    content: object = [TextPart(output), *attachments] if attachments else state.get("output")
    return [call, ToolResult(id_, content, name, exit_code=code if type(code) is int else None, session_id=child)]


def _time(milliseconds: object) -> str | None:
    if not isinstance(milliseconds, int | float) or not 0 < milliseconds < 10**13:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()
