"""Items of ``codex exec --json``; an item of a tool has both the call and its result."""

from __future__ import annotations

from collections.abc import Iterator

from dicast.toolkit.parts import ReasoningPart, TextPart, ToolCall, ToolResult
from dicast.toolkit.session_reading import SessionReading

from ..values import Record, mapping_of, text_of, word_of
from .items import Spoken

_TOOLS = {
    "command_execution": ("command_execution", ("command",)),
    "file_change": ("file_change", ("changes",)),
    "mcp_tool_call": ("mcp_tool_call", ("arguments",)),
    "web_search": ("web_search", ("query", "action")),
    "collab_tool_call": ("collab_tool_call", ("tool", "prompt")),
}
_TYPES = (*_TOOLS, "agent_message", "reasoning", "todo_list", "error")


def read_thread_item(item: Record, reading: SessionReading) -> Iterator[Spoken]:
    """Yield the messages of a completed *item*."""
    type_ = word_of(item, "type") or word_of(item, "item_type")
    if type_ in ("agent_message", "assistant_message"):
        yield Spoken("assistant", [TextPart(text_of(item, "text") or "")])
    elif type_ == "reasoning":
        yield Spoken("assistant", [ReasoningPart(text_of(item, "text") or "")])
    elif type_ in _TOOLS:
        yield _tool(item, str(type_))
    elif type_ == "error":
        yield Spoken("context", [TextPart(text_of(item, "message") or "")])
    elif type_ != "todo_list":
        yield Spoken("assistant", [reading.unknown("item", item.get("type"), "item.type", _TYPES)])


def _tool(item: Record, type_: str) -> Spoken:
    name, keys = _TOOLS[type_]
    arguments = {key: item[key] for key in keys if key in item}
    call = ToolCall(text_of(item, "id"), text_of(item, "tool") or name, arguments.get("arguments", arguments))
    code, status = item.get("exit_code"), item.get("status")
    error = mapping_of(item, "error")
    output = item.get("aggregated_output", item.get("result"))
    output = text_of(error, "message") if error else output
    is_error = status in ("failed", "declined", "error") or bool(error)
    result = ToolResult(call.id, output, is_error=is_error and not code, exit_code=code if type(code) is int else None)
    return Spoken("assistant", [call, result])
