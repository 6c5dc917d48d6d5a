"""Values that hold messages: a text, a message, a list of messages, or a provider's request or response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from dicast import DataError
from dicast.toolkit.parts import Part, TextPart, ToolCall, ToolResult
from dicast.toolkit.roles import role_of

from .blocks import GEMINI, is_bedrock, is_known, read_blocks, read_plain
from .message import Collector, Message

_LISTS = ("messages", "contents", "conversation", "conversations", "chat_history")
_SYSTEMS = ("system", "system_instruction", "systemInstruction", "instructions", "system_prompt")
_ANSWERS = ("message", "output", "response", "result", "answer", "text", "content", "outputs")
_PROMPTS = ("input", "prompt", "question", "query", "inputs", "user_prompt", "text", "content")
_TYPES = ("human", "ai", "system", "tool", "function", "chat", "developer", "constructor")
_DEPTH = 6
"""The most levels of objects around messages; a deeper object is read as text."""


def parsed(value: object) -> Any:
    """Return the value of a text that is a JSON object or list; any other value unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
    return value


def as_text(value: object) -> str:
    """Return a text unchanged, and another value as JSON."""
    return value if isinstance(value, str) else orjson.dumps(value, default=str).decode()


def read_value(value: object, role: str, path: str, collector: Collector, depth: int = 0) -> None:
    """Collect the messages in *value*; a text without a role is a message of *role*."""
    value = parsed(value)
    if value is None or value in ("", [], {}):
        return
    if isinstance(value, list):
        _read_list(value, role, path, collector, depth)
    elif isinstance(value, dict) and depth < _DEPTH:
        _read_object(value, role, path, collector, depth)
    else:
        collector.messages.append(Message(role, [TextPart(as_text(value))]))


def _read_list(value: list[Any], role: str, path: str, collector: Collector, depth: int) -> None:
    value = [parsed(item) if isinstance(item, str) and '"role"' in item else item for item in value]
    if all(_is_message(item) for item in value):
        for number, item in enumerate(value):
            read_message(item, f"{path}[{number}]", collector)
    elif len(value) == 1 and isinstance(value[0], list | dict) and not _is_block(value[0]):
        read_value(value[0], role, path, collector, depth + 1)
    elif all(_is_block(item) for item in value):
        collector.messages.append(Message(role, _parts(value, path, collector)))
    else:
        collector.messages.append(Message(role, [TextPart(as_text(value))]))


def _is_block(value: object) -> bool:
    return isinstance(value, dict) and ("type" in value or is_bedrock([value]))


def _is_message(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("role"), str) or ("from" in value and "value" in value):
        return True
    return value.get("type") in _TYPES and ("content" in value or "data" in value or "kwargs" in value)


def _read_object(value: Mapping[str, Any], role: str, path: str, collector: Collector, depth: int) -> None:
    if _is_message(value) and not any(isinstance(value.get(key), list) for key in _LISTS):
        read_message(value, path, collector)
    elif isinstance(choices := value.get("choices"), list) and choices:
        for number, choice in enumerate(choices[:1]):
            if isinstance(choice, dict):
                _read_choice(choice, f"{path}.choices[{number}]", collector)
    elif role == "assistant":
        _read_answer(value, path, collector, depth)
    else:
        _read_prompt(value, role, path, collector, depth)


def _read_choice(choice: Mapping[str, Any], path: str, collector: Collector) -> None:
    message = choice.get("message") or choice.get("delta")
    before = len(collector.messages)
    if isinstance(message, dict):
        read_message({"role": "assistant", **message}, f"{path}.message", collector)
    else:
        read_value(choice.get("text", message), "assistant", path, collector)
    stop = choice.get("finish_reason")
    for added in collector.messages[before:]:
        added.stop_reason = stop if isinstance(stop, str) else None


def _read_prompt(value: Mapping[str, Any], role: str, path: str, collector: Collector, depth: int) -> None:
    config = value.get("config")
    for holder in (value, config if isinstance(config, dict) else {}):
        for key in _SYSTEMS:
            if holder.get(key):
                _read_system(holder[key], f"{path}.{key}", collector)
    for key in _LISTS:
        if isinstance(value.get(key), list):
            read_value(value[key], role, f"{path}.{key}", collector, depth + 1)
            return
    for key in _PROMPTS:
        if value.get(key) is not None:
            read_value(value[key], role, f"{path}.{key}", collector, depth + 1)
            return
    collector.messages.append(Message(role, [TextPart(as_text(value))]))


def _read_system(value: object, path: str, collector: Collector) -> None:
    value = parsed(value)
    if isinstance(value, dict) and isinstance(value.get("parts"), list):
        value = value["parts"]
    if isinstance(value, list):
        parts = _parts(value, path, collector)
        texts = [part.text for part in parts if isinstance(part, TextPart)]
        collector.messages.append(
            Message("system", [TextPart("\n".join(texts))] if len(texts) == len(parts) else parts)
        )
    else:
        collector.messages.append(Message("system", [TextPart(as_text(value))]))


def _read_answer(value: Mapping[str, Any], path: str, collector: Collector, depth: int) -> None:
    stop = next(
        (value[key] for key in ("finish_reason", "finishReason", "stop_reason") if isinstance(value.get(key), str)),
        None,
    )
    before = len(collector.messages)
    generations = value.get("generations")
    candidates = value.get("candidates")
    content = value.get("content")
    if isinstance(generations, list) and generations:
        _read_generation(generations, path, collector)
    elif isinstance(candidates, list) and candidates and isinstance(candidates[0], dict):
        _read_answer(candidates[0], f"{path}.candidates[0]", collector, depth + 1)
    elif isinstance(content, dict) and isinstance(content.get("parts"), list):
        read_message({"role": "model", **content}, f"{path}.content", collector)
    elif (name := next((key for key in _LISTS if isinstance(value.get(key), list)), None)) is not None:
        messages = Collector(collector.shapes)
        read_value(value[name], "assistant", f"{path}.{name}", messages, depth + 1)
        last = max((place for place, message in enumerate(messages.messages) if message.role == "user"), default=-1)
        collector.messages += messages.messages[last + 1 :]
    elif isinstance(value.get("toolCalls"), list) or isinstance(value.get("tool_calls"), list):
        read_message({"role": "assistant", **value, "content": content or value.get("text")}, path, collector)
    elif (key := next((key for key in _ANSWERS if value.get(key) is not None), None)) is not None:
        read_value(value[key], "assistant", f"{path}.{key}", collector, depth + 1)
    else:
        collector.messages.append(Message("assistant", [TextPart(as_text(value))]))
    for added in collector.messages[before:]:
        added.stop_reason = added.stop_reason or stop


def _read_generation(generations: list[Any], path: str, collector: Collector) -> None:
    """Collect the first answer of LangChain's generations, which are lists of lists."""
    first = generations[0]
    while isinstance(first, list) and first:
        first = first[0]
    if isinstance(first, dict):
        message = first.get("message")
        read_value(message if isinstance(message, dict) else first.get("text"), "assistant", path, collector)


def read_message(item: Mapping[str, Any], path: str, collector: Collector) -> None:
    """Collect one message of any convention; a message that no reader knows becomes a marker."""
    shapes, role = collector.shapes, item.get("role")
    plain_role = role_of(role) if isinstance(role, str) and type(item.get("parts")) is list else None
    if plain_role is not None and plain_role != "tool" and (parts := read_plain(item["parts"])):
        stop = item.get("finish_reason")
        collector.messages.append(Message(plain_role, parts, stop if isinstance(stop, str) else None))
        return
    content = item.get("parts") if isinstance(item.get("parts"), list) else item.get("content")
    content = parsed(content) if isinstance(content, str) and content.lstrip()[:2] in ("[{", "[ ") else content
    stop = item.get("finish_reason")
    if isinstance(content, list) and isinstance(role, str) and _needs_blocks(item, content):
        known_role = role_of(role)
        parts = read_blocks(content, f"{path}.parts", shapes)
        parts = parts if known_role else [shapes.unknown_role(role, path), *parts]
        if known_role == "tool" and not any(isinstance(part, ToolCall | ToolResult) for part in parts):
            parts = [ToolResult(item.get("tool_call_id") or item.get("id"), parts or None, item.get("name"))]
        collector.messages.append(Message(known_role or role, parts, stop if isinstance(stop, str) else None))
        return
    before = len(collector.messages)
    plain = dict(item)
    if isinstance(content, list):
        plain["parts" if isinstance(item.get("parts"), list) else "content"] = content
    try:
        collector.item(plain, path)
    except DataError as error:
        del collector.messages[before:]
        why = error.problems[0].message if error.problems else str(error)
        marker = shapes.unknown("message", role if isinstance(role, str) else "without a role", path, why=f": {why}")
        collector.messages.append(Message(role_of(role) or "assistant", [marker]))
    for added in collector.messages[before:]:
        added.stop_reason = stop if isinstance(stop, str) else added.stop_reason


def _needs_blocks(item: Mapping[str, Any], content: list[Any]) -> bool:
    """Return whether the parts of a message have the types of the conventions, not of a provider."""
    if any(is_known(block) for block in content) or is_bedrock(content):
        return not any(isinstance(block, dict) and GEMINI.intersection(block) for block in content)
    return "parts" in item and any(isinstance(block, dict) and "type" in block for block in content)


def _parts(blocks: list[Any], path: str, collector: Collector) -> list[Part]:
    """Return the parts of a list of blocks without a message around them."""
    if any(is_known(block) for block in blocks) or is_bedrock(blocks):
        return read_blocks(blocks, path, collector.shapes)
    plain = [{"type": "text", "text": block} if isinstance(block, str) else _typed(block) for block in blocks]
    try:
        return collector.content(plain, path)
    except DataError:
        return [TextPart(as_text(blocks))]


def _typed(block: Any) -> Any:
    """Return a text block with the key ``text``, in place of the conventions' ``content``; other blocks unchanged."""
    if isinstance(block, dict) and block.get("type", "text") == "text" and isinstance(block.get("content"), str):
        return {"type": "text", "text": block["content"]}
    return block
