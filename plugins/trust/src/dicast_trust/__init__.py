"""How far verdicts can be trusted: calibrated cascades, plans, anytime-valid stops, judge cards."""

from __future__ import annotations

from dicast import EarlyStop, hookimpl

from .anytime import Anytime

__all__ = ["Anytime"]


@hookimpl
def dicast_early_stops() -> list[type[EarlyStop]]:
    """Offer the stop that may be looked at at any time."""
    return [Anytime]
