"""Judges that score the work of agents from its trace, by versioned rubrics and at no cost."""

from __future__ import annotations

from dicast import Judge, hookimpl

from .session import Session
from .tool_cycle import ToolCycle
from .turn import Turn
from .workload import PartialCredit, Workload

__all__ = ["PartialCredit", "Session", "ToolCycle", "Turn", "Workload"]


@hookimpl
def dicast_judges() -> list[type[Judge]]:
    """Offer ``heuristic/turn``, ``heuristic/tool_cycle``, ``heuristic/session`` and ``heuristic/workload``."""
    return [Turn, ToolCycle, Session, Workload]
