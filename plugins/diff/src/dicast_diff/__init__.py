"""Truth metrics that compare an output with its reference."""

from __future__ import annotations

from dicast import Metric, hookimpl

from .entails import Entails
from .match import Match
from .numeric import Numeric
from .similarity import Similarity
from .structure import Json

__all__ = ["Entails", "Json", "Match", "Numeric", "Similarity"]


@hookimpl
def dicast_metrics() -> list[type[Metric]]:
    """Offer the comparisons."""
    return [Match, Numeric, Json, Similarity, Entails]
