"""Messages of LangChain, plain or as its serializers write them: ``{type, data}`` and ``{lc, type: constructor, id, kwargs}``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..conversations import Conversation
from ..parts import MediaKind, MediaPart, Part, ReasoningPart, TextPart, ToolCall, ToolResult
from ..roles import Role, role_of
from .blocks import ANY, Block, BlockReader, is_failure, read_content, result_exit_code, with_reasoning
from .chat import add_model_call, read_calls, read_extras
from .shapes import Shapes, refuse

TYPES: Mapping[str, Role | None] = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
    "chat": None,  # it has a role
}
"""The types of messages with their roles."""


def type_of(item: Block) -> str | None:
    """Return the type of a message, such as ``human``, from any form of it; None if it has none."""
    type_ = item.get("type")
    if item.get("lc") is not None or type_ == "constructor":
        path = item.get("id")
        return _short(path[-1]) if isinstance(path, list) and path and isinstance(path[-1], str) else None
    return _short(type_) if isinstance(type_, str) else None


def _short(name: str) -> str:
    """Return the type for the name of a class: ``human`` for ``HumanMessage`` and ``HumanMessageChunk``."""
    return name.removesuffix("Chunk").removesuffix("Message").lower() if name.endswith(("Message", "Chunk")) else name


def is_langchain(item: Block) -> bool:
    """Return whether *item* is a message of LangChain, and not one of another dialect with a ``type``."""
    if item.get("type") == "constructor" and isinstance(item.get("kwargs"), dict):
        return True
    return type_of(item) in TYPES and ("content" in item or isinstance(item.get("data"), dict))


def read_langchain(item: Block, path: str, shapes: Shapes, conversation: Conversation) -> None:
    """Add the message *item* at *path* to *conversation*.

    :raises DataError: (without a line) if it is no message.
    """
    dialects = {*shapes.dialects, "langchain"}
    _read(item, path, shapes, conversation)
    shapes.dialects = dialects  # the blocks of providers are LangChain's too


def _read(item: Block, path: str, shapes: Shapes, conversation: Conversation) -> None:
    type_ = type_of(item)
    inner = next((value for key in ("kwargs", "data") if isinstance(value := item.get(key), dict)), item)
    name = inner.get("role") if type_ == "chat" else type_
    role = role_of(name) if type_ == "chat" or type_ is None else TYPES.get(type_)
    content = inner.get("content") or None
    if isinstance(content, list):  # strings may be among the blocks
        content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in content]
    parts = read_content(content, f"{path}.content", shapes, BLOCKS)
    if role == "tool" and not any(isinstance(part, ToolCall | ToolResult) for part in parts):
        conversation.add(role, [_result(inner, path, parts)])
        return
    if role is None:
        parts = [shapes.unknown("role", name, f"{path}.type", tuple(TYPES)), *parts]
    if role == "assistant":
        _add_call(inner, conversation)
        parts = _assistant(inner, path, shapes, parts)
    conversation.add(role or str(name), parts)


def _assistant(inner: Block, path: str, shapes: Shapes, parts: list[Part]) -> list[Part]:
    """Return the parts of an assistant's message; a call that is in its content and in ``tool_calls`` counts once."""
    kwargs = inner.get("additional_kwargs")
    extra: Block = kwargs if isinstance(kwargs, dict) else {}
    calls = [*read_calls({"tool_calls": inner.get("tool_calls")}, path, shapes), *_invalid_calls(inner)]
    if not calls:
        calls = read_calls(extra, f"{path}.additional_kwargs", shapes)
    ids = {part.id for part in parts if isinstance(part, ToolCall)}
    calls = [call for call in calls if call.id is None or call.id not in ids]
    thought = extra.get("reasoning_content")
    thoughts: list[Part] = [ReasoningPart(thought)] if isinstance(thought, str) and thought else []
    return [*thoughts, *with_reasoning(parts), *read_extras(extra, shapes), *calls]


def _invalid_calls(inner: Block) -> list[ToolCall]:
    """Return the calls whose arguments LangChain could not parse."""
    calls = inner.get("invalid_tool_calls")
    return [
        ToolCall(
            call.get("id"),
            str(call.get("name") or ""),
            call.get("args"),
            error=str(call["error"]) if call.get("error") else None,
        )
        for call in (calls if isinstance(calls, list) else ())
        if isinstance(call, dict)
    ]


def _result(inner: Block, path: str, parts: list[Part]) -> ToolResult:
    id_, name = inner.get("tool_call_id"), inner.get("name")
    if not isinstance(id_, str | None):
        refuse("a message's 'tool_call_id' is a string", path)
    text = parts[0].text if len(parts) == 1 and isinstance(parts[0], TextPart) else parts or None
    return ToolResult(id_, text, name if isinstance(name, str) else None, is_failure(inner), result_exit_code(inner))


def _add_call(inner: Block, conversation: Conversation) -> None:
    metadata = inner.get("response_metadata")
    details: Mapping[str, Any] = metadata if isinstance(metadata, dict) else {}
    model = details.get("model_name") or details.get("model")
    usage = inner.get("usage_metadata") or details.get("token_usage") or details.get("usage")
    stop = details.get("finish_reason") or details.get("stop_reason")
    add_model_call({"model": model, "usage": usage, "stop_reason": stop}, conversation)


def _standard(kind: MediaKind) -> BlockReader:
    """Return a reader of LangChain's own blocks of media: ``{type, url | base64 | data | file_id, mime_type}``."""

    def read(block: Block, path: str, shapes: Shapes) -> Part:
        if isinstance(block.get("source"), dict) or isinstance(block.get("file"), dict):
            return ANY["image" if kind == "image" else "document" if "source" in block else "file"](block, path, shapes)
        fields = {key: value for key, value in block.items() if isinstance(value, str) and value}
        data = fields.get("base64") or fields.get("data")
        return MediaPart(
            kind, fields.get("mime_type"), fields.get("url"), data, fields.get("file_id") or fields.get("id")
        )

    return read


def _tool_call(block: Block, path: str, shapes: Shapes) -> Part:
    id_, name = block.get("id"), block.get("name")
    return ToolCall(id_ if isinstance(id_, str) else None, name if isinstance(name, str) else "", block.get("args"))


BLOCKS: Mapping[str, BlockReader] = {
    **ANY,
    "image": _standard("image"),
    "audio": _standard("audio"),
    "file": _standard("file"),
    "video": _standard("file"),
    "reasoning": ANY["thinking"],
    "tool_call": _tool_call,
}
"""The blocks of LangChain: its own, and those of the providers, which it passes on."""
