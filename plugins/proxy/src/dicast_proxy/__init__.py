"""Cheap checks of form and of tool calls: format, keywords, length, syntax, params, repeats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dicast import Classes, Metric, hookimpl
from dicast.toolkit.named_classes import NamedClasses

if TYPE_CHECKING:
    from .format import Format
    from .keywords import Keywords
    from .length import Length
    from .syntax import Syntax
    from .tool_params_schema import ToolParamsSchema
    from .was_repeated import WasRepeated

__all__ = ["Format", "Keywords", "Length", "Syntax", "ToolParamsSchema", "WasRepeated"]

_METRICS = NamedClasses(
    __name__,
    {
        "format": ".format:Format",
        "keywords": ".keywords:Keywords",
        "length": ".length:Length",
        "syntax": ".syntax:Syntax",
        "tool_params_schema": ".tool_params_schema:ToolParamsSchema",
        "was_repeated": ".was_repeated:WasRepeated",
    },
)
__getattr__ = _METRICS.attribute


@hookimpl
def dicast_metrics() -> Classes[Metric]:
    """Offer the metrics."""
    return _METRICS
