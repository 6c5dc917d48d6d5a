"""What a run's scores come to, how two runs compare, and when enough rows have been seen."""

from __future__ import annotations

from dicast import Aggregate, Comparison, EarlyStop, hookimpl

from .agreement import Agreement
from .assumptions import Assumptions
from .bayes import Bayes
from .category_effects import CategoryEffects
from .cliffs_delta import CliffsDelta
from .criteria_effects import CriteriaEffects
from .distribution import Distribution
from .distribution_shift import DistributionShift
from .leaderboard import Leaderboard
from .outliers import Outliers
from .paired import Paired
from .pass_rate import PassRate
from .plateau import Plateau
from .power import Power
from .practical import Practical
from .rationale_analysis import RationaleAnalysis
from .recommendation import Recommendation
from .referee_alignment import RefereeAlignment
from .score_delta import ScoreDelta
from .score_flips import Flips
from .score_stats import ScoreStats
from .significance import Significance
from .summaries import CostSummary, LatencySummary
from .threshold import Threshold
from .variant_ranking import VariantRanking

__all__ = [
    "Agreement",
    "Assumptions",
    "Bayes",
    "CategoryEffects",
    "CliffsDelta",
    "CostSummary",
    "CriteriaEffects",
    "Distribution",
    "DistributionShift",
    "Flips",
    "LatencySummary",
    "Leaderboard",
    "Outliers",
    "Paired",
    "PassRate",
    "Plateau",
    "Power",
    "Practical",
    "RationaleAnalysis",
    "Recommendation",
    "RefereeAlignment",
    "ScoreDelta",
    "ScoreStats",
    "Significance",
    "Threshold",
    "VariantRanking",
]


@hookimpl
def dicast_aggregates() -> list[type[Aggregate]]:
    """Offer the aggregates."""
    return [
        *(ScoreStats, Distribution, PassRate, Power, RationaleAnalysis),
        *(Recommendation, VariantRanking, CostSummary, LatencySummary, Agreement, Leaderboard),
    ]


@hookimpl
def dicast_comparisons() -> list[type[Comparison]]:
    """Offer the comparisons."""
    return [
        *(ScoreDelta, CliffsDelta, Significance, Paired, Bayes, Practical, Assumptions, DistributionShift),
        *(RefereeAlignment, Outliers, Flips, CategoryEffects, CriteriaEffects),
    ]


@hookimpl
def dicast_early_stops() -> list[type[EarlyStop]]:
    """Offer the two reasons to stop early."""
    return [Threshold, Plateau]
