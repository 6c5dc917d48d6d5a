"""How far verdicts can be trusted: calibrated cascades, plans, anytime-valid stops, judge cards."""

from __future__ import annotations

from dicast import hookimpl

from .audits.prevalence import Prevalence
from .stopping.anytime import Anytime

__all__ = ["Anytime", "Prevalence"]


@hookimpl
def dicast_early_stops() -> list[type]:
    """Offer the stop that may be looked at at any time."""
    return [Anytime]


@hookimpl
def dicast_aggregates() -> list[type]:
    """Offer the mean of a gold standard that a judge's scores stand in for."""
    return [Prevalence]
