"""Response items of a rollout: messages, reasoning, tool calls and their results."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs
import orjson

from dicast import DataError
from dicast.toolkit.message_formats.blocks import RESPONSES, read_content
from dicast.toolkit.parts import MediaPart, Part, ReasoningPart, TextPart, ToolCall, ToolResult
from dicast.toolkit.roles import ROLES
from dicast.toolkit.session_reading import SessionReading

from ..values import Record, list_of, mapping_of, text_of

CONTEXT = "context"
_CONTEXT_STARTS = (
    "<environment_context>", "<user_instructions>", "<INSTRUCTIONS>", "# AGENTS.md instructions", "<permissions instructions>", "<turn_aborted>",
    "<skill>", "<subagent_notification>", "<user_shell_command>", "<collaboration_mode>", "<hook_prompt", "<model_switch>", "<personality_spec>",
    "<apps_instructions>", "<plugins_instructions>", "<skills_instructions>", "<codex_internal_context", "<turn_context",
)  # fmt: skip
_EXIT_CODE = re.compile(r"^(?:Exit code: |Process exited with code )(-?\d+)", re.MULTILINE)
_HEADS = ("Exit code: ", "Chunk ID: ", "Wall time: ", "Command: ", "Process exited with code ")
"""Beginnings of an output with a header about the command, which ends with the line ``Output:``."""


@attrs.define
class Spoken:
    """A message of *role* with its *parts*."""

    role: str
    parts: list[Part]


def is_context(text: str) -> bool:
    """Return whether Codex wrote *text* in the user's name."""
    return text.lstrip().startswith(_CONTEXT_STARTS)


def _message(item: Record, reading: SessionReading) -> Spoken | None:
    try:
        parts = read_content(item.get("content"), "payload.content", reading.shapes, RESPONSES)
    except DataError as error:
        parts = [reading.malformed(error, "message")]
    name = item.get("role")
    role: str | None = ROLES.get(name) if isinstance(name, str) else None
    if role is None:
        parts = [reading.shapes.unknown_role(name, "payload"), *parts]
        role = str(name)
    texts = [part.text for part in parts if type(part) is TextPart]
    if role == "user" and texts and all(map(is_context, texts)):
        role = CONTEXT
    return Spoken(role, parts)


def _reasoning(item: Record, reading: SessionReading) -> Spoken | None:
    texts = [
        text
        for key in ("summary", "content")
        for block in list_of(item, key)
        if (text := block if isinstance(block, str) else text_of(block, "text") if isinstance(block, dict) else None)
    ]
    return Spoken("assistant", [ReasoningPart("\n".join(texts))])


def _call(name: str | None = None, arguments: str = "arguments", *, is_plain: bool = False) -> Any:
    """Return a reader of calls; *name* is the tool of items without a name."""

    def read(item: Record, reading: SessionReading) -> Spoken:
        tool = text_of(item, "name", "tool_name") or name or "unknown"
        value = item.get(arguments, item.get("arguments"))
        return Spoken("assistant", [ToolCall(_id(item), tool, value, is_plain=is_plain)])

    return read


def _result(item: Record, reading: SessionReading) -> Spoken | None:
    content, is_error, code = read_output(item.get("output", item.get("tools")), reading)
    return Spoken(
        "tool", [ToolResult(_id(item), content, is_error=is_error or item.get("status") == "failed", exit_code=code)]
    )


def _search(item: Record, reading: SessionReading) -> Spoken | None:
    """Read a call of a tool that the provider runs, whose result is not recorded."""
    call = ToolCall(text_of(item, "call_id", "id"), "web_search", item.get("action"))
    return Spoken("assistant", [call])


def _image(item: Record, reading: SessionReading) -> Spoken | None:
    call = ToolCall(text_of(item, "call_id", "id"), "image_generation", {"prompt": item.get("revised_prompt")})
    image = MediaPart("image", data=text_of(item, "result"))
    status = item.get("status")
    parts: list[Part] = [call]
    if image.data is not None or status == "failed":
        parts.append(ToolResult(call.id, [image] if image.data else "", is_error=status == "failed"))
    return Spoken("assistant", parts)


def _agent(item: Record, reading: SessionReading) -> Spoken | None:
    """Read a message from another agent."""
    text = text_of(item, "text", "message", "content")
    if text is not None:
        return Spoken(CONTEXT, [TextPart(text)])
    return Spoken(CONTEXT, read_content(list_of(item, "content"), "payload.content", reading.shapes, RESPONSES))


def _none(item: Record, reading: SessionReading) -> Spoken | None:
    return None


ITEMS: Mapping[str, Any] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _call(),
    "function_call_output": _result,
    "custom_tool_call": _call(arguments="input", is_plain=True),
    "custom_tool_call_output": _result,
    "local_shell_call": _call("local_shell", "action"),
    "local_shell_call_output": _result,
    "mcp_tool_call_output": _result,
    "tool_search_call": _call("tool_search"),
    "tool_search_output": _result,
    "web_search_call": _search,
    "image_generation_call": _image,
    "agent_message": _agent,
    **dict.fromkeys(
        (
            "ghost_snapshot", "compaction", "compaction_summary", "context_compaction", "compaction_trigger", "additional_tools",
            "configuration_update", "other",
        ),
        _none,
    ),
}  # fmt: skip
"""Readers of response items by type. They return None for an item without a message or a tool call."""


def read_output(output: object, reading: SessionReading) -> tuple[object, bool, int | None]:
    """Return the content of a result, whether the call failed, and its exit code."""
    if isinstance(output, str):
        return _read_text(output)
    if isinstance(output, dict) and "content" in output:
        content, failed, code = read_output(output["content"], reading)
        return content, failed or output.get("success") is False, code
    if isinstance(output, list) and all(isinstance(block, dict) and "type" in block for block in output):
        try:
            return read_content(output, "payload.output", reading.shapes, RESPONSES), False, None
        except DataError as error:
            return [reading.malformed(error, "result")], False, None
    return output, False, None


def _read_text(output: str) -> tuple[object, bool, int | None]:
    """Return the output of a command without the header, and the exit code."""
    if output.startswith(('{"output"', '{"metadata"')):
        try:
            value = orjson.loads(output)
        except orjson.JSONDecodeError:
            return output, False, None
        code = mapping_of(value, "metadata").get("exit_code")
        return output, False, code if type(code) is int else None
    head = output.partition("\nOutput:")[0] if output.startswith(_HEADS) else ""
    match = _EXIT_CODE.search(head)
    return output, False, None if match is None else int(match[1])


def _id(item: Record) -> str | None:
    return text_of(item, "call_id", "id")
