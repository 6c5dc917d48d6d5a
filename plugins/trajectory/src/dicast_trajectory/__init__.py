"""Truth metrics of an agent's tool calls."""

from __future__ import annotations

from dicast import Metric, hookimpl

from .limits import Limits
from .match import Match
from .tool_correctness import ToolCorrectness

__all__ = ["Limits", "Match", "ToolCorrectness"]


@hookimpl
def dicast_metrics() -> list[type[Metric]]:
    """Return the metrics of tool calls."""
    return [Match, Limits, ToolCorrectness]
