"""Converts messages of a sample into messages of a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from dicast.toolkit.conversations import Conversation
from dicast.toolkit.parts import (
    MediaKind,
    MediaPart,
    Part,
    ReasoningPart,
    RefusalPart,
    Spoken,
    TextPart,
    ToolCall,
    ToolResult,
    split_reasoning,
)
from dicast.toolkit.session_reading import SessionReading

from .events import Events

Value = Mapping[str, Any]

_MEDIA: Mapping[str, MediaKind] = {"image": "image", "audio": "audio", "video": "file", "document": "file"}
_TYPES = ("text", "reasoning", *_MEDIA, "data", "tool_use")
_ROLES = ("system", "user", "assistant", "tool")


def add_message(conversation: Conversation, reading: SessionReading, message: Value, path: str, events: Events) -> None:
    """Add a *message* at *path*, with its model call or tool call in *events*."""
    role = message.get("role")
    parts = _parts(message.get("content"), reading, f"{path}.content")
    match role:
        case "assistant":
            start_turn(conversation)
            conversation.model_call(**events.model_call(message))
            calls = [_call(call) for call in message.get("tool_calls") or () if isinstance(call, dict)]
            conversation.add("assistant", [*_with_reasoning(parts), *calls], time=events.message_time(message))
        case "tool":
            start_turn(conversation)
            conversation.add("tool", [_result(message, parts)], time=events.tool_time(message))
        case "user" if message.get("tool_call_id"):  # the media of a tool's result
            conversation.add("tool", parts)
        case "system" | "user":
            conversation.add(role, parts)
        case _:
            conversation.add("system", [reading.unknown("role", role, f"{path}.role", _ROLES), *parts])


def start_turn(conversation: Conversation) -> None:
    """Start a turn without a message of the user, if the conversation has no turn."""
    if not conversation.has_turns:
        conversation.start_turn()


def _call(call: Value) -> ToolCall:
    error = call.get("parse_error")
    id_ = call.get("id")
    return ToolCall(
        id_ if isinstance(id_, str) else None,
        str(call.get("function", "")),
        call.get("arguments"),
        is_plain=isinstance(call.get("arguments"), str),
        error=error if isinstance(error, str) else None,
    )


def _result(message: Value, parts: list[Part]) -> ToolResult:
    """Return the result of a tool, or the text of its error if it has no other text."""
    error = message.get("error")
    spoken: list[Spoken] = [part for part in parts if not isinstance(part, ToolCall | ToolResult)]
    content: Any = spoken
    if len(spoken) == 1 and type(spoken[0]) is TextPart:
        content = spoken[0].text
    if isinstance(error, dict) and (not spoken or content == ""):
        content = str(error.get("message") or error.get("type") or "error")
    id_, name = message.get("tool_call_id"), message.get("function")
    return ToolResult(
        id_ if isinstance(id_, str) else None,
        content or "",
        name if isinstance(name, str) else None,
        is_error=bool(error),
    )


def _with_reasoning(parts: list[Part]) -> list[Part]:
    """Return *parts* with each ``<think>…</think>`` in a text as a reasoning part; older logs have reasoning in texts."""
    result: list[Part] = []
    for part in parts:
        result += split_reasoning(part.text) if type(part) is TextPart and "<think>" in part.text else [part]
    return result


def _parts(content: object, reading: SessionReading, path: str) -> list[Part]:
    if content is None:
        return []
    if isinstance(content, str):
        return [TextPart(content)]
    if not isinstance(content, list):
        return [reading.unknown("content", type(content).__name__, path)]
    parts: list[Part] = []
    for number, block in enumerate(content):
        place = f"{path}[{number}]"
        if isinstance(block, str):
            parts.append(TextPart(block))
        elif isinstance(block, dict):
            parts += _block(block, reading, place)
        else:
            parts.append(reading.unknown("part", type(block).__name__, place))
    return parts


def _block(block: Value, reading: SessionReading, path: str) -> list[Part]:
    type_ = block.get("type")
    text = block.get(type_) if isinstance(type_, str) else None
    if type_ == "text" and isinstance(text, str):
        return [RefusalPart(text) if block.get("refusal") is True else TextPart(text)]
    if type_ == "reasoning" and isinstance(text, str):
        return [ReasoningPart(str(block.get("summary") or "") if block.get("redacted") is True else text)]
    if isinstance(type_, str) and type_ in _MEDIA and isinstance(text, str):
        return [_media(type_, text, block)]
    if type_ == "tool_use":
        return _server_tool(block)
    if type_ == "data":
        reading.mark("data of a provider")
        return [TextPart("[data of a provider]")]
    return [reading.unknown("part", type_, path, _TYPES)]


def _media(type_: str, content: str, block: Value) -> MediaPart:
    format_, name = block.get("format"), block.get("filename")
    media_type = block.get("mime_type") or (f"{type_}/{format_}" if isinstance(format_, str) else None)
    is_address = content.startswith(("data:", "http://", "https://"))
    return MediaPart(
        _MEDIA[type_],
        media_type if isinstance(media_type, str) else None,
        url=content if is_address else None,
        name=name if isinstance(name, str) and name else None if is_address else content,
    )


def _server_tool(block: Value) -> list[Part]:
    """Return the call and the result of a tool that the provider ran."""
    id_, error = block.get("id"), block.get("error")
    arguments: object = block.get("arguments")
    is_plain = False
    if isinstance(arguments, str):
        try:
            orjson.loads(arguments)
        except orjson.JSONDecodeError:
            is_plain = True
    name = str(block.get("name") or block.get("tool_type") or "")
    call_id = id_ if isinstance(id_, str) else None
    result = block.get("result")
    return [
        ToolCall(call_id, name, arguments, is_plain=is_plain),
        ToolResult(call_id, error if isinstance(error, str) and error else result, name, is_error=bool(error)),
    ]
