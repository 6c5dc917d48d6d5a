"""Cheap checks of form and of tool calls: format, keywords, length, syntax, params, repeats."""

from __future__ import annotations

from dicast import Metric, hookimpl

from .format import Format
from .keywords import Keywords
from .length import Length
from .syntax import Syntax
from .tool_params_schema import ToolParamsSchema
from .was_repeated import WasRepeated

__all__ = ["Format", "Keywords", "Length", "Syntax", "ToolParamsSchema", "WasRepeated"]


@hookimpl
def dicast_metrics() -> list[type[Metric]]:
    """Offer the metrics."""
    return [Format, Keywords, Length, Syntax, ToolParamsSchema, WasRepeated]
