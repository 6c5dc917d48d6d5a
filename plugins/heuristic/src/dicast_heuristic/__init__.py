"""Judges that score agent turns from their trace, by versioned rubrics and at no cost."""

from __future__ import annotations

from dicast import Judge, hookimpl

from .turn import Turn

__all__ = ["Turn"]


@hookimpl
def dicast_judges() -> list[type[Judge]]:
    """Offer ``heuristic/turn``."""
    return [Turn]
