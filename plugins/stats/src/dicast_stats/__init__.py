"""What a run's scores come to, how two runs compare, and when enough rows have been seen."""

from __future__ import annotations

from dicast import Aggregate, Comparison, EarlyStop, hookimpl

from .agreement import Agreement
from .cliffs_delta import CliffsDelta
from .paired import Paired
from .plateau import Plateau
from .recommendation import Recommendation
from .score_delta import ScoreDelta
from .score_stats import ScoreStats
from .significance import Significance
from .summaries import CostSummary, LatencySummary
from .threshold import Threshold
from .variant_ranking import VariantRanking

__all__ = [
    "Agreement",
    "CliffsDelta",
    "CostSummary",
    "LatencySummary",
    "Paired",
    "Plateau",
    "Recommendation",
    "ScoreDelta",
    "ScoreStats",
    "Significance",
    "Threshold",
    "VariantRanking",
]


@hookimpl
def dicast_aggregates() -> list[type[Aggregate]]:
    """Offer the six aggregates."""
    return [ScoreStats, Recommendation, VariantRanking, CostSummary, LatencySummary, Agreement]


@hookimpl
def dicast_comparisons() -> list[type[Comparison]]:
    """Offer the four comparisons."""
    return [ScoreDelta, CliffsDelta, Significance, Paired]


@hookimpl
def dicast_early_stops() -> list[type[EarlyStop]]:
    """Offer the two reasons to stop early."""
    return [Threshold, Plateau]
