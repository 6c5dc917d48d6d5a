"""What became of the turns of each model, kept over all runs."""

from __future__ import annotations

from dicast import hookimpl

from .outcomes import Outcomes
from .store import Outcome, Store

__all__ = ["Outcome", "Outcomes", "Store"]


@hookimpl
def dicast_sinks() -> list[type[Outcomes]]:
    """Offer ``patterns/outcomes``."""
    return [Outcomes]
