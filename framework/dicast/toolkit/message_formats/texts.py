"""Texts of messages in any chat format, for pages and prompts that show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..parts import ReasoningPart, ToolCall, ToolResult
from .blocks import ANY, read_block
from .shapes import Shapes


def message_text(message: Mapping[str, Any]) -> str | None:
    """Return the text of *message*, with a marker for each part that is no text; None if it has no text."""
    content = message.get("content")
    if isinstance(content, list):
        texts = [_part_text(part) for part in content if isinstance(part, dict)]
        return "\n".join(text for text in texts if text is not None) or None
    return content if isinstance(content, str) else None


def _part_text(part: dict[str, Any]) -> str | None:
    if isinstance(text := part.get("text"), str):
        return text
    result = read_block(part, "content", Shapes(is_marked=True), ANY)
    return None if isinstance(result, ReasoningPart | ToolCall | ToolResult) else result.text
