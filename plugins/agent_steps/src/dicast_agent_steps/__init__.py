"""Checks of the form of an agent's steps: its plan, its executed steps and its summary."""

from __future__ import annotations

from dicast import Metric, hookimpl

from .combined import Combined
from .execution import SubtaskExecution
from .planning import SubtaskPlanning
from .synthesis import Synthesis
from .utility import ToolStepUtility

__all__ = ["Combined", "SubtaskExecution", "SubtaskPlanning", "Synthesis", "ToolStepUtility"]


@hookimpl
def dicast_metrics() -> list[type[Metric]]:
    """Return the five metrics."""
    return [SubtaskPlanning, SubtaskExecution, Synthesis, ToolStepUtility, Combined]
