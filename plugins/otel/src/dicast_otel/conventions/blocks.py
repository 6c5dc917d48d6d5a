"""Parts of messages as instrumentations write them: GenAI conventions, Vercel AI, Amazon Bedrock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dicast.toolkit.message_formats import Shapes
from dicast.toolkit.parts import MediaKind, MediaPart, Part, ReasoningPart, RefusalPart, TextPart, ToolCall, ToolResult

Block = Mapping[str, Any]
Reader = Callable[[Block], Part]

_BEDROCK = (
    "text",
    "toolUse",
    "toolResult",
    "reasoningContent",
    "image",
    "document",
    "video",
    "guardContent",
    "cachePoint",
)


def is_bedrock(blocks: Sequence[object]) -> bool:
    """Return whether *blocks* are blocks of Amazon Bedrock, which have a key for their kind in place of a type."""
    return bool(blocks) and all(
        isinstance(block, dict) and "type" not in block and any(key in block for key in _BEDROCK) for block in blocks
    )


def read_blocks(blocks: Sequence[object], path: str, shapes: Shapes) -> list[Part]:
    """Return *blocks* as parts, with markers for unknown blocks."""
    return [_read(block, f"{path}[{number}]", shapes) for number, block in enumerate(blocks)]


def read_plain(blocks: Sequence[object]) -> list[Part] | None:
    """Return *blocks* as parts if all are texts, calls and results of the GenAI conventions, as in most messages; else None."""
    parts: list[Part] = []
    for block in blocks:
        if type(block) is not dict:
            return None
        reader = _PLAIN.get(block.get("type", ""))
        if reader is None or not GEMINI.isdisjoint(block):
            return None
        parts.append(reader(block))
    return parts


def is_known(block: object) -> bool:
    """Return whether *block* has a type that only the GenAI conventions or Vercel AI have."""
    return isinstance(block, dict) and block.get("type") in _TYPES


def _read(block: object, path: str, shapes: Shapes) -> Part:
    if isinstance(block, str):
        return TextPart(block)
    if not isinstance(block, dict):
        return shapes.unknown("part", block, path)
    type_ = block.get("type")
    if type_ is None:
        key = next((key for key in _BEDROCK_READERS if key in block), None)
        return shapes.unknown("part", ", ".join(block), path) if key is None else _BEDROCK_READERS[key](block[key])
    reader = _READERS.get(str(type_))
    return shapes.unknown("part", type_, path, tuple(_READERS)) if reader is None else reader(block)


def _first(block: Block, *keys: str) -> Any:
    return next((block[key] for key in keys if block.get(key) is not None), None)


def _text(block: Block) -> Part:
    text = block.get("content")
    if type(text) is str:  # as in most blocks
        return TextPart(text)
    text = _first(block, "content", "text", "value")
    return TextPart(text if isinstance(text, str) else "" if text is None else str(text))


def _reasoning(block: Block) -> Part:
    return ReasoningPart(str(_first(block, "content", "text", "reasoning") or ""))


def _refusal(block: Block) -> Part:
    return RefusalPart(str(_first(block, "content", "refusal", "text") or ""))


def _id(block: Block, *keys: str) -> str | None:
    value = _first(block, *keys)
    return value if isinstance(value, str) and value else None


def _call(block: Block) -> Part:
    inner = block.get("server_tool_call")
    arguments = _first(block, "arguments", "args", "input")
    if arguments is None and isinstance(inner, dict):
        arguments = inner.get("arguments", dict(inner))
    return ToolCall(
        _id(block, "id", "toolCallId", "tool_call_id"), str(_first(block, "name", "toolName") or ""), arguments
    )


def _result(block: Block) -> Part:
    content = _first(block, "response", "result", "content", "server_tool_call_response")
    failed = block.get("isError") is True or block.get("is_error") is True
    output = block.get("output")
    if content is None and isinstance(output, dict) and "type" in output:  # {"type": "json", "value": …}
        failed = failed or str(output["type"]).startswith("error")
        content = output.get("value")
    elif content is None:
        content = output
    name = _first(block, "name", "toolName")
    id_ = _id(block, "id", "toolCallId", "tool_call_id")
    return ToolResult(id_, content, name if isinstance(name, str) else None, failed)


def _media_kind(media_type: object, modality: object) -> MediaKind:
    word = str(modality or media_type or "").partition("/")[0]
    return "image" if word == "image" else "audio" if word == "audio" else "file"


def _media(block: Block) -> Part:
    media_type = _id(block, "mime_type", "mediaType", "mimeType", "media_type")
    url, content = _id(block, "uri", "url"), _first(block, "content", "data", "image")
    if isinstance(content, str) and content.startswith(("http://", "https://", "data:")):
        url, content = content, None
    kind: MediaKind = "image" if block.get("type") == "image" else _media_kind(media_type, block.get("modality"))
    data = content if isinstance(content, str) else None
    name = _id(block, "filename", "name")
    return MediaPart(kind, media_type, url, None if url else data, _id(block, "file_id"), name)


_READERS: Mapping[str, Reader] = {
    "text": _text,
    "reasoning": _reasoning,
    "thinking": _reasoning,
    "refusal": _refusal,
    "tool_call": _call,
    "tool-call": _call,
    "server_tool_call": _call,
    "tool_call_response": _result,
    "tool-result": _result,
    "server_tool_call_response": _result,
    "tool-error": _result,
    "blob": _media,
    "uri": _media,
    "file": _media,
    "image": _media,
}
_PLAIN = {name: _READERS[name] for name in ("text", "reasoning", "tool_call", "tool_call_response")}
GEMINI = frozenset(
    ("functionCall", "function_call", "functionResponse", "function_response", "inlineData", "inline_data")
)
"""The keys of blocks of Gemini, which have no type."""

_TYPES = frozenset(("tool_call", "tool-call", "tool_call_response", "tool-result", "tool-error", "blob", "uri", "server_tool_call",
                  "server_tool_call_response"))  # fmt: skip


def _bedrock_result(value: Any) -> Part:
    block: Block = value if isinstance(value, dict) else {}
    content = block.get("content")
    if isinstance(content, list):
        texts = [item.get("text") if isinstance(item, dict) else None for item in content]
        plain = [text for text in texts if isinstance(text, str)]
        content = "\n".join(plain) if len(plain) == len(content) else content[0].get("json", content) if len(content) == 1 and isinstance(content[0], dict) else content  # fmt: skip
    return ToolResult(_id(block, "toolUseId"), content, is_error=block.get("status") == "error")


def _bedrock_call(value: Any) -> Part:
    block: Block = value if isinstance(value, dict) else {}
    return ToolCall(_id(block, "toolUseId"), str(block.get("name") or ""), block.get("input"))


def _bedrock_thought(value: Any) -> Part:
    text = value.get("reasoningText") if isinstance(value, dict) else None
    return ReasoningPart(str(text.get("text") or "") if isinstance(text, dict) else "")


def _bedrock_media(kind: MediaKind) -> Callable[[Any], Part]:
    def read(value: Any) -> Part:
        block: Block = value if isinstance(value, dict) else {}
        format_ = block.get("format")
        media_type = f"image/{format_}" if kind == "image" and format_ else None
        source = block.get("source")
        data = source.get("bytes") if isinstance(source, dict) else None
        return MediaPart(kind, media_type, data=data if isinstance(data, str) else None, name=_id(block, "name"))

    return read


_BEDROCK_READERS: Mapping[str, Callable[[Any], Part]] = {
    "toolUse": _bedrock_call,
    "toolResult": _bedrock_result,
    "reasoningContent": _bedrock_thought,
    "image": _bedrock_media("image"),
    "document": _bedrock_media("file"),
    "text": lambda value: TextPart(str(value)),
}
