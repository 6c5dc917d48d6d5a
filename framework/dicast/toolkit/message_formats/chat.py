"""Messages with a role: OpenAI Chat and Anthropic Messages, which differ in the types of their parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dicast import normalize_stop_reason

from ..conversations import Conversation
from ..parts import MediaPart, Part, ReasoningPart, RefusalPart, TextPart, ToolCall, ToolResult, split_reasoning
from ..roles import ROLES, Role, role_of
from .blocks import Block, BlockReader, is_failure, read_content, result_exit_code, with_reasoning
from .shapes import Shapes, refuse

_USUAL = frozenset(("role", "content", "name", "tool_calls", "function_call", "tool_call_id"))
_PLAIN_FIELDS = 2  # role and content
_CALL_TYPES = (None, "function", "custom", "tool_call")
_CALL_FIELDS = frozenset(("model", "usage", "cost_usd", "cost", "stop_reason", "finish_reason"))
_TEXT_TYPES = (str, type(None))
_ID_TYPES = (str, type(None))
_NO_ID = "a message's 'tool_call_id' is a string"
_NO_CALL = "a tool call has an 'id' and a 'function' with a 'name'"
_REASONING = ("reasoning_content", "reasoning")
_ITEM_KEYS = frozenset(
    (*_USUAL, *_REASONING, *_CALL_FIELDS, "refusal", "audio", "annotations", "id", "type", "status",
     "stop_sequence", "timestamp", "created_at", "index", "weight", "metadata", "reasoning_details", "provider", "logprobs", "phase")
)  # fmt: skip
"""Fields of a message that are read, or that never hold its text."""


def read_message(
    item: Block, path: str, shapes: Shapes, conversation: Conversation, types: Mapping[str, BlockReader]
) -> None:
    """Add the message *item* at *path*, whose parts are of *types*, to *conversation*.

    :raises DataError: (without a line) if it is no message.
    """
    name, content = item.get("role"), item.get("content")
    if type(content) in _TEXT_TYPES and type(name) is str and item.keys() <= _USUAL and (role := ROLES.get(name)):
        _read_plain(item, role, content, path, shapes, conversation)  # as nearly all messages
        return
    if not isinstance(name, str):
        refuse("a message is an object with a 'role'", path)
    role = role_of(name)
    if role == "tool":
        conversation.add(role, _results(item, path, shapes, types))
        return
    parts = _parts(item, path, shapes, types)
    if role == "assistant":
        add_model_call(item, conversation)
        parts = _thoughts(item) + with_reasoning(parts)
        parts = [_refused(part) for part in parts] if normalize_stop_reason(_stop_reason(item)) == "refusal" else parts
    elif role is None:
        parts = [shapes.unknown_role(name, path), *parts]
    conversation.add(role or name, parts)


def _read_plain(
    item: Block, role: Role, content: str | None, path: str, shapes: Shapes, conversation: Conversation
) -> None:
    """Add a message whose content is a text or null, and which has no fields but the usual ones."""
    if role == "tool":
        id_ = item.get("tool_call_id")
        if type(id_) not in _ID_TYPES:
            refuse(_NO_ID, path)
        shapes.dialects.add("openai")
        conversation.add(role, (ToolResult(id_, content, item.get("name")), *read_calls(item, path, shapes)))
    elif content is None:
        conversation.add(role, read_calls(item, path, shapes))
    elif role != "assistant":
        _read_text(item, role, content, path, shapes, conversation)
    elif "<think>" in content:
        conversation.add(role, [*split_reasoning(content), *read_calls(item, path, shapes)])
    else:
        _read_text(item, role, content, path, shapes, conversation)


def _read_text(item: Block, role: Role, content: str, path: str, shapes: Shapes, conversation: Conversation) -> None:
    """Add a text with the tool calls next to it."""
    if len(item) == _PLAIN_FIELDS or not (calls := read_calls(item, path, shapes)):
        conversation.add_text(role, content)
    else:
        conversation.add(role, [TextPart(content), *calls])


def _refused(part: Part) -> Part:
    return RefusalPart(part.text) if isinstance(part, TextPart) else part


def _parts(item: Block, path: str, shapes: Shapes, types: Mapping[str, BlockReader]) -> list[Part]:
    extras = read_extras(item, shapes)
    content = None if extras and item.get("content") == "" else item.get("content")
    parts = read_content(content, f"{path}.content", shapes, types)
    parts = [*parts, *extras, *read_calls(item, path, shapes)]
    return parts or unread(item, path, shapes)


def unread(item: Block, path: str, shapes: Shapes) -> list[Part]:
    """Return a marker for a message without ``content`` that has unknown fields, where its text may be; an empty list for other messages."""
    unknown = item.keys() - _ITEM_KEYS
    if "content" in item or not unknown or any(isinstance(item.get(key), str) for key in _REASONING):
        return []
    names = ", ".join(sorted(unknown))
    return [shapes.unknown("message", names, path, why=": it has no 'content'")]


def read_extras(item: Block, shapes: Shapes) -> list[Part]:
    """Return the refusal and the spoken answer that OpenAI Chat has next to the content."""
    parts: list[Part] = []
    if isinstance(refusal := item.get("refusal"), str) and refusal:
        shapes.dialects.add("openai")
        parts.append(RefusalPart(refusal))
    if isinstance(audio := item.get("audio"), dict):
        shapes.dialects.add("openai")
        parts.append(_audio(audio))
    return parts


def _audio(audio: Block) -> MediaPart:
    """Return the spoken answer of an assistant; its transcript is the answer's text."""
    texts = {key: value for key in ("id", "data", "transcript") if isinstance(value := audio.get(key), str)}
    return MediaPart("audio", data=texts.get("data"), file_id=texts.get("id"), transcript=texts.get("transcript"))


def _thoughts(item: Block) -> list[Part]:
    """Return the reasoning that servers put next to the content."""
    texts = (item.get(key) for key in _REASONING)
    text = next((text for text in texts if isinstance(text, str) and text), None)
    return [] if text is None else [ReasoningPart(text)]


def _results(item: Block, path: str, shapes: Shapes, types: Mapping[str, BlockReader]) -> list[Part]:
    """Return the result in a message of the role ``tool``; or the parts of its content, if calls or results are among them."""
    id_, name, content = item.get("tool_call_id"), item.get("name"), item.get("content")
    if not isinstance(id_, str | None):
        refuse(_NO_ID, path)
    shapes.dialects.add("openai")
    failed, code = is_failure(item), result_exit_code(item)
    if type(content) is str:
        return [ToolResult(id_, content, name, failed, code)]
    parts = read_content(content, f"{path}.content", shapes, types) or unread(item, path, shapes)
    if any(isinstance(part, ToolCall | ToolResult) for part in parts):
        return parts
    return [ToolResult(id_, parts or None, name, failed, code)]


def read_calls(item: Block, path: str, shapes: Shapes) -> list[ToolCall]:
    """Return the tool calls in ``tool_calls`` and ``function_call`` of a message.

    :raises DataError: (without a line) if they are no list of calls.
    """
    calls = item.get("tool_calls")
    if calls is None and "function_call" not in item:
        return []
    if not isinstance(calls, list | None):
        refuse("a message's 'tool_calls' is a list", path)
    result = [read_call(call, f"{path}.tool_calls[{number}]", shapes) for number, call in enumerate(calls or ())]
    if not result and (call := item.get("function_call")):
        result = [read_call({"function": call}, path, shapes)]
    if result:
        shapes.dialects.add("openai")
    return result


def read_call(call: object, path: str, shapes: Shapes) -> ToolCall:
    """Return the tool call *call*: a function as an object or as a name with arguments, or a custom tool with a plain input.

    :raises DataError: (without a line) if it has no name, or an id that is no text.
    """
    if not isinstance(call, dict) or type(call.get("id")) not in _ID_TYPES:
        refuse(_NO_CALL, path)
    function = call.get("function")
    if call.get("type") == "function" and type(function) is dict and type(name := function.get("name")) is str:
        return ToolCall(call.get("id"), name, function.get("arguments"))  # as nearly all calls
    if call.get("type") not in _CALL_TYPES:
        shapes.unknown("tool call", call.get("type"), f"{path}.type", ("function", "custom"))
    for key in ("function", "custom"):
        inner = call.get(key)
        if isinstance(inner, str):  # a name, with its arguments next to it
            return _named(call, inner, call, key == "custom")
        if isinstance(inner, dict) and isinstance(inner.get("name"), str):
            return _named(call, inner["name"], inner, key == "custom")
    if "function" not in call and isinstance(call.get("name"), str):
        return _named(call, call["name"], call, is_plain=False)
    if shapes.is_marked and call.get("type") not in _CALL_TYPES:
        return ToolCall(call.get("id"), f'[unknown tool call "{call.get("type")}"]', call)
    return refuse(_NO_CALL, path)


def _named(call: Block, name: str, inner: Block, is_plain: bool) -> ToolCall:
    keys = ("input", "arguments", "args") if is_plain else ("arguments", "args", "input")
    arguments: Any = next((inner[key] for key in keys if key in inner), None)
    error = call.get("error")
    return ToolCall(call.get("id"), name, arguments, is_plain, error if isinstance(error, str) else None)


def add_model_call(item: Block, conversation: Conversation) -> None:
    """Record the model call of an assistant's message, if the message has its model, usage or cost."""
    if _CALL_FIELDS.isdisjoint(item):
        return
    model, usage = item.get("model"), item.get("usage")
    cost = next((item[key] for key in ("cost_usd", "cost") if isinstance(item.get(key), int | float | str)), None)
    conversation.model_call(
        model=model if isinstance(model, str) else None,
        usage=usage if isinstance(usage, dict) else None,
        cost_usd=cost,
        stop_reason=_stop_reason(item),
    )


def _stop_reason(item: Block) -> str | None:
    stop = item.get("stop_reason") or item.get("finish_reason")
    return stop if isinstance(stop, str) else None
