"""Parts of a message's content, by their type, for OpenAI Chat, OpenAI Responses and Anthropic Messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..parts import (
    MediaKind,
    MediaPart,
    Part,
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCall,
    ToolResult,
    split_reasoning,
)
from .shapes import Shapes, refuse

Block = Mapping[str, Any]
_FAILED = ("error", "failed")
_EXIT_CODES = ("exit_code", "exitCode", "return_code", "returncode")


class Malformed(Exception):
    """A part of a known type lacks a field that it must have."""


def read_content(content: object, path: str, shapes: Shapes, types: Mapping[str, BlockReader]) -> list[Part]:
    """Return the parts of *content*: a text, None, or a list of blocks of *types*.

    :raises DataError: (without a line) if it is none of these.
    """
    if content is None:
        return []
    if isinstance(content, str):
        return [TextPart(content)]
    if not isinstance(content, list):
        refuse("a message's 'content' is a string, null or a list of parts", path)
    parts: list[Part] = []
    for number, block in enumerate(content):
        if not isinstance(block, dict):
            refuse("each part of a message's 'content' is an object", path)
        parts.append(read_block(block, f"{path}[{number}]", shapes, types))
    return parts


def read_block(block: Block, path: str, shapes: Shapes, types: Mapping[str, BlockReader]) -> Part:
    """Return the part that *block* is; a marker if its type is unknown or it lacks a field."""
    type_ = block.get("type", "text" if isinstance(block.get("text"), str) else None)
    reader = types.get(type_) if isinstance(type_, str) else None
    if reader is None and isinstance(type_, str):
        reader = _server_tool(type_, types)
    if reader is None:
        return shapes.unknown("part", type_, path, tuple(types))
    try:
        part = reader(block, path, shapes)
    except Malformed as error:
        return shapes.unknown("part", type_, path, why=f": {error}")
    if (dialect := DIALECT_OF.get(str(type_))) is not None:
        shapes.dialects.add(dialect)
    return part


BlockReader = Callable[[Block, str, Shapes], Part]


def with_reasoning(parts: Sequence[Part]) -> list[Part]:
    """Return *parts* of an assistant with each ``<think>…</think>`` of a text as reasoning."""
    result: list[Part] = []
    for part in parts:
        result += split_reasoning(part.text) if type(part) is TextPart and "<think>" in part.text else [part]
    return result


def is_failure(item: Block) -> bool:
    """Return whether a result says that its tool failed."""
    return item.get("is_error") is True or item.get("status") in _FAILED or item.get("error") not in (None, "", False)


def result_exit_code(item: Block) -> int | None:
    """Return the exit code of a result, None if it has none."""
    return next((code for key in _EXIT_CODES if type(code := item.get(key)) is int), None)


def _string(block: Block, *keys: str) -> str:
    for key in keys:
        value = block.get(key)
        if isinstance(value, dict):  # {"value": text, "annotations": [...]}
            value = value.get("value")
        if isinstance(value, str):
            return value
    raise Malformed(f"it needs {keys[0]!r}, a string")


def _optional(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _text(block: Block, path: str, shapes: Shapes) -> Part:
    return TextPart(_string(block, "text"))


def _refusal(block: Block, path: str, shapes: Shapes) -> Part:
    return RefusalPart(_string(block, "refusal", "text"))


def _reasoning(block: Block, path: str, shapes: Shapes) -> Part:
    return ReasoningPart(_string(block, "thinking", "text", "reasoning"))


def _redacted(block: Block, path: str, shapes: Shapes) -> Part:
    return ReasoningPart("")


def _image_url(block: Block, path: str, shapes: Shapes) -> Part:
    """Read ``image_url`` of OpenAI Chat (an object with ``url``, or the address) and ``input_image`` of Responses."""
    value = block.get("image_url")
    url = value.get("url") if isinstance(value, dict) else value
    return MediaPart("image", url=_optional(url), file_id=_optional(block.get("file_id")))


def _audio(block: Block, path: str, shapes: Shapes) -> Part:
    inner = block.get("input_audio")
    value: Block = inner if isinstance(inner, dict) else block
    kind = _optional(value.get("format"))
    transcript = _optional(value.get("transcript"))
    return MediaPart(
        "audio", f"audio/{kind}" if kind else None, data=_optional(value.get("data")), transcript=transcript
    )


def _file(block: Block, path: str, shapes: Shapes) -> Part:
    inner = block.get("file")
    value: Block = inner if isinstance(inner, dict) else block
    data = _optional(value.get("file_data"))
    url = data if data is not None and data.startswith("data:") else _optional(value.get("file_url"))
    names = (_optional(value.get(key)) for key in ("file_id", "filename"))
    file_id, name = names
    return MediaPart("file", url=url, data=None if url == data else data, file_id=file_id, name=name)


def _source(kind: MediaKind) -> BlockReader:
    """Return a reader of Anthropic's ``image`` and ``document`` blocks."""

    def read(block: Block, path: str, shapes: Shapes) -> Part:
        inner = block.get("source")
        source: Block = inner if isinstance(inner, dict) else block
        media_type, name = _optional(source.get("media_type")), _optional(block.get("title"))
        if source.get("type") == "text":  # a document of plain text is judged as its text
            return TextPart(_string(source, "data"))
        url = _optional(source.get("url")) or _optional(block.get(kind))
        file_id = _optional(source.get("file_id"))
        return MediaPart(kind, media_type, url, None if url else _optional(source.get("data")), file_id, name)

    return read


def _tool_use(block: Block, path: str, shapes: Shapes) -> Part:
    return ToolCall(_optional(block.get("id")), _string(block, "name"), block.get("input"))


def _tool_result(block: Block, path: str, shapes: Shapes) -> Part:
    content = block.get("content")
    if isinstance(content, list):
        content = read_results(content, f"{path}.content", shapes)
    inner: Block = content if isinstance(content, dict) else {}
    failed = is_failure(block) or str(inner.get("type")).endswith("_error")
    code = result_exit_code({**inner, **block})
    return ToolResult(_optional(block.get("tool_use_id")), content, is_error=failed, exit_code=code)


def read_results(content: list[Any], path: str, shapes: Shapes) -> object:
    """Return the content of a result: its parts, or *content* itself if it has no blocks."""
    if not all(isinstance(block, dict) and "type" in block for block in content):
        return content
    return [
        part
        if not isinstance(part, ToolCall | ToolResult)
        else shapes.unknown("part", block["type"], f"{path}[{number}]")
        for number, block in enumerate(content)
        for part in [read_block(block, f"{path}[{number}]", shapes, RESULT_BLOCKS)]
    ]


def _search_result(block: Block, path: str, shapes: Shapes) -> Part:
    content = block.get("content")
    texts = (
        [inner["text"] for inner in content if isinstance(inner, dict) and isinstance(inner.get("text"), str)]
        if isinstance(content, list)
        else []
    )
    return TextPart(
        "\n".join([*(value for key in ("title", "source", "url") if (value := _optional(block.get(key)))), *texts])
    )


def _tool_reference(block: Block, path: str, shapes: Shapes) -> Part:
    """Read the name of a tool that a search for tools found."""
    return TextPart(_string(block, "tool_name"))


def _server_tool(type_: str, types: Mapping[str, BlockReader]) -> BlockReader | None:
    """Return the reader of a call or a result of a tool that the provider runs, such as ``web_search_tool_result``."""
    if "tool_use" not in types:
        return None
    if type_.endswith("_tool_use"):
        return _tool_use
    return _tool_result if type_.endswith("_tool_result") else None


OPENAI: Mapping[str, BlockReader] = {
    "text": _text,
    "image_url": _image_url,
    "input_audio": _audio,
    "file": _file,
    "refusal": _refusal,
}
"""The parts of OpenAI Chat."""

RESPONSES: Mapping[str, BlockReader] = {
    "input_text": _text,
    "output_text": _text,
    "text": _text,
    "summary_text": _text,
    "reasoning_text": _reasoning,
    "refusal": _refusal,
    "input_image": _image_url,
    "computer_screenshot": _image_url,
    "input_file": _file,
    "input_audio": _audio,
    "output_audio": _audio,
}
"""The parts of OpenAI Responses."""

ANTHROPIC: Mapping[str, BlockReader] = {
    "text": _text,
    "image": _source("image"),
    "document": _source("file"),
    "tool_use": _tool_use,
    "tool_result": _tool_result,
    "thinking": _reasoning,
    "redacted_thinking": _redacted,
    "search_result": _search_result,
}
"""The blocks of Anthropic Messages."""

RESULT_BLOCKS: Mapping[str, BlockReader] = {
    **OPENAI,
    **RESPONSES,
    **ANTHROPIC,
    "web_search_result": _search_result,
    "tool_reference": _tool_reference,
}
"""The parts of a tool's result."""

DIALECT_OF: Mapping[str, str] = {
    **dict.fromkeys(("image_url", "file"), "openai"),
    **dict.fromkeys([type_ for type_ in RESPONSES if type_ not in ("text", "refusal", "input_audio")], "responses"),
    **dict.fromkeys([type_ for type_ in ANTHROPIC if type_ != "text"], "anthropic"),
}
"""The dialect of each type of part that only one dialect has."""

ANY: Mapping[str, BlockReader] = {**RESPONSES, **OPENAI, **ANTHROPIC}
