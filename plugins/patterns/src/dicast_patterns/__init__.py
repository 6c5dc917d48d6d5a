"""A store of the outcomes of each model's turns over all runs."""

from __future__ import annotations

from dicast import hookimpl

from .outcomes import Outcomes
from .store import Outcome, Store

__all__ = ["Outcome", "Outcomes", "Store"]


@hookimpl
def dicast_sinks() -> list[type[Outcomes]]:
    """Return the sink ``patterns/outcomes``."""
    return [Outcomes]
