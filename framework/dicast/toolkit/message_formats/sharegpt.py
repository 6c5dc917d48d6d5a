"""Messages of ShareGPT: ``{from, value}``."""

from __future__ import annotations

from ..conversations import Conversation
from ..parts import Part, TextPart, ToolCall, ToolResult
from ..roles import Role, role_of
from .blocks import Block, with_reasoning
from .shapes import Shapes, refuse

_ROLES: dict[str, Role] = {"bing": "assistant", "bard": "assistant", "claude": "assistant"}
_RESULTS = ("function_response", "tool_response")
_CALLS = ("function_call", "tool_call")


def read_sharegpt(item: Block, path: str, shapes: Shapes, conversation: Conversation) -> None:
    """Add the message *item* at *path* to *conversation*.

    :raises DataError: (without a line) if it has no ``from``, or a ``value`` that is no text.
    """
    shapes.dialects.add("sharegpt")
    name, value = item.get("from"), item.get("value")
    if not isinstance(name, str) or not isinstance(value, str | None) or "value" not in item:
        refuse("a message is an object with a text 'from' and a text 'value'", path)
    lower = name.lower()
    role = role_of(name) or _ROLES.get(lower)
    parts: list[Part] = [] if value is None else [TextPart(value)]
    if lower in _CALLS:
        conversation.add("assistant", _calls(value or ""))
    elif role == "tool" or lower in _RESULTS:
        conversation.add("tool", [ToolResult(None, value)])
    elif role is None:
        conversation.add(name, [shapes.unknown("role", name, f"{path}.from", ("human", "gpt", "system")), *parts])
    else:
        conversation.add(role, with_reasoning(parts) if role == "assistant" else parts)


def _calls(text: str) -> list[Part]:
    """Return the calls that *text* has as JSON: an object with ``name`` and ``arguments``, or a list of such."""
    import orjson  # few conversations have calls

    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return [ToolCall(None, "", text, is_plain=True, error=f"not JSON: {error}")]
    calls = value if isinstance(value, list) else [value]
    if not all(isinstance(call, dict) and isinstance(call.get("name"), str) for call in calls):
        return [ToolCall(None, "", text, is_plain=True, error="no object with a 'name'")]
    return [ToolCall(None, call["name"], call.get("arguments", call.get("parameters"))) for call in calls]
