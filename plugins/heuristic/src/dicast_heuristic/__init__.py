"""Judges that score an agent's trace by versioned rubrics, without a cost."""

from __future__ import annotations

from dicast import Judge, hookimpl

from .session import Session
from .tool_cycle import ToolCycle
from .turn import Turn
from .workload import PartialCredit, Workload

__all__ = ["PartialCredit", "Session", "ToolCycle", "Turn", "Workload"]


@hookimpl
def dicast_judges() -> list[type[Judge]]:
    """Return the four judges."""
    return [Turn, ToolCycle, Session, Workload]
