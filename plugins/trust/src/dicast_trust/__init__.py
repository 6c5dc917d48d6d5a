"""Trust in verdicts: calibrated cascades, plans, anytime-valid stops, judge cards."""

from __future__ import annotations

from dicast import hookimpl

from .audits.prevalence import Prevalence
from .stopping.anytime import Anytime

__all__ = ["Anytime", "Prevalence"]


@hookimpl
def dicast_early_stops() -> list[type]:
    """Return the early stop ``trust/anytime``."""
    return [Anytime]


@hookimpl
def dicast_aggregates() -> list[type]:
    """Return the aggregate ``trust/prevalence``."""
    return [Prevalence]
