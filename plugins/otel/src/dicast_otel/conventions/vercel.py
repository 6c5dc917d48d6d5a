"""Messages of Vercel's AI SDK: ``ai.prompt``, ``ai.prompt.messages``, ``ai.response.*``."""

from __future__ import annotations

from typing import Any

from dicast.toolkit.parts import Part, ReasoningPart, TextPart, ToolCall

from ..span import Attributes
from .message import Collector, Message
from .values import as_text, parsed, read_value


def read_prompt(attributes: Attributes, collector: Collector) -> None:
    """Collect the prompt of a span."""
    for key in ("ai.prompt.messages", "ai.prompt"):
        if attributes.get(key):
            read_value(attributes[key], "user", key, collector)
            return


def read_answer(attributes: Attributes, collector: Collector) -> None:
    """Collect the answer of a span: its reasoning, its text or object, its tool calls."""
    parts: list[Part] = []
    if reasoning := _first(attributes, "reasoning"):
        parts.append(ReasoningPart(as_text(reasoning)))
    if (text := _first(attributes, "text")) not in (None, ""):
        parts.append(TextPart(as_text(text)))
    elif (value := _first(attributes, "object")) is not None:
        parts.append(TextPart(as_text(value)))
    calls = parsed(_first(attributes, "toolCalls"))
    for call in calls if isinstance(calls, list) else []:
        if isinstance(call, dict):
            id_ = call.get("toolCallId")
            arguments = call.get("args", call.get("input"))
            parts.append(ToolCall(id_ if isinstance(id_, str) else None, str(call.get("toolName") or ""), arguments))
    if parts:
        collector.messages.append(Message("assistant", parts))


def _first(attributes: Attributes, name: str) -> Any:
    keys = (f"ai.response.{name}", f"ai.result.{name}")
    return next((attributes[key] for key in keys if attributes.get(key) is not None), None)
