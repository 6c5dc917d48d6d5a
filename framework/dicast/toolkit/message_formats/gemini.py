"""Contents of Gemini: a role with parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..conversations import Conversation
from ..parts import MediaKind, MediaPart, Part, ReasoningPart, TextPart, ToolCall, ToolResult
from ..roles import role_of
from .blocks import Block, with_reasoning
from .chat import add_model_call
from .shapes import Shapes, refuse

PARTS = ("text", "functionCall", "functionResponse", "inlineData", "fileData", "executableCode", "codeExecutionResult")
"""The kinds of parts: the name of the field that holds the part."""

_SNAKE = {
    "function_call": "functionCall",
    "function_response": "functionResponse",
    "inline_data": "inlineData",
    "file_data": "fileData",
    "executable_code": "executableCode",
    "code_execution_result": "codeExecutionResult",
}
_OTHER_KEYS = frozenset(
    ("thought", "thoughtSignature", "thought_signature", "videoMetadata", "video_metadata", "mediaResolution",
     "media_resolution", "partMetadata", "part_metadata")
)  # fmt: skip
"""Fields with further information about a part."""

_CODE_ID = "code_execution"


def read_gemini(item: Block, path: str, shapes: Shapes, conversation: Conversation) -> None:
    """Add the content *item* at *path* to *conversation*; without a role it is the user's.

    :raises DataError: (without a line) if it has no list of parts.
    """
    shapes.dialects.add("gemini")
    name = item.get("role") or "user"
    role = role_of(name)
    blocks = item.get("parts")
    blocks = [{"text": blocks}] if isinstance(blocks, str) else [blocks] if isinstance(blocks, dict) else blocks
    if not isinstance(blocks, list):
        refuse("'parts' is a list of parts", path)
    parts = [read_part(block, f"{path}.parts[{number}]", shapes) for number, block in enumerate(blocks)]
    if role == "assistant":
        parts = with_reasoning(parts)
    if role is None:
        parts = [shapes.unknown_role(name, path), *parts]
    if role == "tool" and not any(isinstance(part, ToolCall | ToolResult) for part in parts):
        parts = [ToolResult(None, parts or None)]
    conversation.add(role or str(name), parts)


def read_part(block: object, path: str, shapes: Shapes) -> Part:
    """Return the part that *block* is; fields that are null count as missing.

    :raises DataError: (without a line) if it is no object.
    """
    if isinstance(block, str):
        return TextPart(block)
    if not isinstance(block, dict):
        refuse("each of the 'parts' is an object", path)
    if isinstance(type_ := block.get("type"), str) and type_ != "text":
        return shapes.unknown("part", type_, path, PARTS)  # of another dialect
    fields = {
        _SNAKE.get(key, key): value for key, value in block.items() if value is not None and key not in _OTHER_KEYS
    }
    kinds = [key for key in PARTS if key in fields]
    if len(kinds) > 1:
        return shapes.unknown("part", ", ".join(kinds), path, why=": a part is one of these")
    kind = next(iter(kinds), None)
    value = fields.get(kind or "")
    if kind == "text" and isinstance(value, str):
        return ReasoningPart(value) if block.get("thought") is True else TextPart(value)
    if kind in _READERS and isinstance(value, dict):
        return _READERS[kind](value, path, shapes)
    if not fields and any(block.get(key) for key in ("thoughtSignature", "thought_signature", "thought")):
        return ReasoningPart("")
    return shapes.unknown("part", next(iter(fields), ""), path, PARTS)


def _call(value: Block, path: str, shapes: Shapes) -> Part:
    name = value.get("name")
    return ToolCall(_id(value), name if isinstance(name, str) else "", value.get("args", value.get("arguments")))


def _response(value: Block, path: str, shapes: Shapes) -> Part:
    name, response = value.get("name"), value.get("response")
    failed = isinstance(response, dict) and response.get("error") not in (None, "", False)
    return ToolResult(_id(value), response, name if isinstance(name, str) else None, failed)


def _media(value: Block, path: str, shapes: Shapes) -> Part:
    media_type = _text(value, "mimeType", "mime_type")
    kind: MediaKind = "file"
    if media_type is not None and media_type.startswith("image/"):
        kind = "image"
    elif media_type is not None and media_type.startswith("audio/"):
        kind = "audio"
    url, name = _text(value, "fileUri", "file_uri"), _text(value, "displayName", "display_name")
    return MediaPart(kind, media_type, url, None if url else _text(value, "data"), None, name)


def _code(value: Block, path: str, shapes: Shapes) -> Part:
    return ToolCall(_id(value), _CODE_ID, dict(value))


def _code_result(value: Block, path: str, shapes: Shapes) -> Part:
    failed = value.get("outcome") not in (None, "OUTCOME_OK")
    return ToolResult(_id(value), value.get("output"), _CODE_ID, failed)


_READERS = {
    "functionCall": _call,
    "functionResponse": _response,
    "inlineData": _media,
    "fileData": _media,
    "executableCode": _code,
    "codeExecutionResult": _code_result,
}


def _id(value: Block) -> str | None:
    text = value.get("id")
    return text if isinstance(text, str) and text else None


def _text(value: Block, *keys: str) -> str | None:
    return next((text for key in keys if isinstance(text := value.get(key), str)), None)


def add_system(record: dict[str, Any], shapes: Shapes, conversation: Conversation) -> None:
    """Add the system instruction of *record*, which is taken out of it."""
    for key in ("systemInstruction", "system_instruction"):
        value = record.pop(key, None)
        if isinstance(value, str):
            conversation.add("system", [TextPart(value)])
        elif isinstance(value, dict):
            read_gemini({**value, "role": "system"}, key, shapes, conversation)
        elif value is not None:
            refuse(f"{key!r} is a text or an object with 'parts'", key)


def failure_of_candidates(record: Mapping[str, Any]) -> str | None:
    """Return why a response has no answer, None if it has one or is no response."""
    candidates = record.get("candidates")
    if (
        not isinstance(candidates, list)
        or not candidates
        or not all(isinstance(candidate, dict) for candidate in candidates)
    ):
        return None
    contents = [candidate.get("content") for candidate in candidates]
    if any(isinstance(content, dict) and content.get("parts") for content in contents):
        return None
    reason = candidates[0].get("finishReason") or candidates[0].get("finish_reason")
    return f"the response has no content, finish reason {reason!r}"


def add_candidates(record: dict[str, Any], shapes: Shapes, conversation: Conversation) -> None:
    """Add the answer of a response in *record*: the content of its first candidate; others are unknown items."""
    candidates = record.pop("candidates", None)
    if not isinstance(candidates, list | None):
        refuse("'candidates' is a list", "candidates")
    for number, candidate in enumerate(candidates or ()):
        path = f"candidates[{number}]"
        content = candidate.get("content") if isinstance(candidate, dict) else None
        if number or not isinstance(content, dict):
            shapes.unknown("item", "candidate", path)
            continue
        finish = candidate.get("finishReason") or candidate.get("finish_reason")
        usage = record.get("usageMetadata") or record.get("usage_metadata")
        model = record.get("modelVersion") or record.get("model_version")
        call: Mapping[str, Any] = {"model": model, "usage": usage, "stop_reason": finish}
        add_model_call(call, conversation)
        read_gemini({"role": "model", **content}, f"{path}.content", shapes, conversation)
