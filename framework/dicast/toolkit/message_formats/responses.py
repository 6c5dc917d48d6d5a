"""Items of OpenAI Responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..conversations import Conversation
from ..parts import MediaPart, Part, ReasoningPart, ToolCall, ToolResult
from .blocks import RESPONSES, Block, is_failure, read_content, read_results, result_exit_code
from .chat import add_model_call, read_message
from .shapes import Shapes, refuse

_PLAIN_ARGUMENTS = {
    "web_search_call": "action",
    "file_search_call": "queries",
    "code_interpreter_call": "code",
    "computer_call": "action",
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
}
"""Calls of tools that the provider knows: the type of the item, and the field with the arguments."""

_INLINE_RESULTS = {"file_search_call": "results", "code_interpreter_call": "outputs", "mcp_call": "output"}
_RESULTS = (
    "function_call_output",
    "custom_tool_call_output",
    "computer_call_output",
    "local_shell_call_output",
    "shell_call_output",
    "apply_patch_call_output",
)
_CALLS = ("function_call", "custom_tool_call", "mcp_call", *_PLAIN_ARGUMENTS)
ITEMS = ("message", "reasoning", "image_generation_call", *_CALLS, *_RESULTS)
"""The types of items that are read."""


def read_response_item(item: Block, path: str, shapes: Shapes, conversation: Conversation) -> None:
    """Add *item* at *path* to *conversation*.

    :raises DataError: (without a line) if a field that it needs is missing.
    """
    type_ = item.get("type", "message")
    if type_ == "message":
        read_message(item, path, shapes, conversation, RESPONSES)
        return
    shapes.dialects.add("responses")
    if type_ in _CALLS:
        conversation.add("assistant", _call(item, path, str(type_)))
    elif type_ in _RESULTS:
        conversation.add("tool", [_result(item, path, shapes)])
    elif type_ == "reasoning":
        conversation.add("assistant", [ReasoningPart(_thoughts(item))])
    elif type_ == "image_generation_call":
        result = item.get("result")
        kind = item.get("output_format")
        media_type = f"image/{kind}" if isinstance(kind, str) else "image/png"
        conversation.add(
            "assistant", [MediaPart("image", media_type, data=result if isinstance(result, str) else None)]
        )
    else:
        conversation.add("assistant", [shapes.unknown("item", type_, path, ITEMS)])


def _call(item: Block, path: str, type_: str) -> list[Part]:
    """Return a call, and its result where the item has it."""
    id_ = item.get("call_id") or item.get("id")
    if not isinstance(id_, str | None):
        refuse("the 'call_id' of an item is a string", path)
    if (field := _PLAIN_ARGUMENTS.get(type_)) is not None:
        call = ToolCall(id_, type_.removesuffix("_call"), {field: item.get(field)})
    else:
        name = item.get("name")
        if not isinstance(name, str):
            refuse(f"an item {type_!r} needs a 'name'", path)
        is_plain = type_ == "custom_tool_call"
        call = ToolCall(id_, name, item.get("input" if is_plain else "arguments"), is_plain)
    inline = _INLINE_RESULTS.get(type_)
    if inline is None or (item.get(inline) is None and not is_failure(item)):
        return [call]
    content = item.get(inline)
    error = item.get("error")
    return [call, ToolResult(id_, error if content is None else content, call.name, is_failure(item))]


def _result(item: Block, path: str, shapes: Shapes) -> ToolResult:
    id_, output = item.get("call_id") or item.get("id"), item.get("output")
    if not isinstance(id_, str | None):
        refuse("the 'call_id' of an item is a string", path)
    code = result_exit_code(item)
    if isinstance(output, list):
        code = next((exit_code for result in output if (exit_code := _outcome(result))), code)
        output = read_results(output, f"{path}.output", shapes)
    elif isinstance(output, dict) and output.get("type") == "computer_screenshot":
        output = read_results([output], f"{path}.output", shapes)
    return ToolResult(id_, output, None, is_failure(item), code)


def _outcome(result: object) -> int | None:
    """Return the exit code of one result of a shell call."""
    outcome = result.get("outcome") if isinstance(result, dict) else None
    return result_exit_code(outcome) if isinstance(outcome, dict) else None


def _thoughts(item: Block) -> str:
    """Return the text of a reasoning item, else its summary; empty if it is encrypted."""
    for key in ("content", "summary"):
        blocks = item.get(key)
        if isinstance(blocks, str) and blocks:
            return blocks
        if isinstance(blocks, list):
            texts = [
                block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str)
            ]
            if texts:
                return "\n".join(texts)
    return ""


def response_items(record: dict[str, Any], shapes: Shapes, conversation: Conversation) -> list[tuple[str, list[Any]]]:
    """Take the lists of items out of *record*, with their keys; a text is a list of one message."""
    instructions = record.pop("instructions", None)
    if isinstance(instructions, str) and instructions:
        conversation.add("system", read_content(instructions, "instructions", shapes, RESPONSES))
    lists: list[tuple[str, list[Any]]] = []
    for key in ("input", "output"):
        value = record.pop(key, None)
        if isinstance(value, str):
            lists.append((key, [{"role": "user" if key == "input" else "assistant", "content": value}]))
        elif isinstance(value, list):
            lists.append((key, value))
        elif value is not None:
            refuse(f"{key!r} is a list of items, or a text", key)
    return lists


def add_response_call(record: Mapping[str, Any], conversation: Conversation) -> None:
    """Record the model call of a whole response object."""
    details = record.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    add_model_call({**record, "stop_reason": reason}, conversation)
