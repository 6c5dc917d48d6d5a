"""Statistics of a run's scores, comparisons of two runs, and conditions for stopping a run early."""

from __future__ import annotations

from dicast import Aggregate, Comparison, EarlyStop, hookimpl

from .aggregates.agreement import Agreement
from .aggregates.distribution import Distribution
from .aggregates.leaderboard import Leaderboard
from .aggregates.pass_rate import PassRate
from .aggregates.power import Power
from .aggregates.rationale_analysis import RationaleAnalysis
from .aggregates.recommendation import Recommendation
from .aggregates.requests import CostSummary, LatencySummary
from .aggregates.score_stats import ScoreStats
from .aggregates.variant_ranking import VariantRanking
from .pairs.flips import Flips
from .pairs.outliers import Outliers
from .pairs.paired import Paired
from .pairs.practical import Practical
from .pairs.referee_alignment import RefereeAlignment
from .stops.plateau import Plateau
from .stops.threshold import Threshold
from .unpaired.assumptions import Assumptions
from .unpaired.bayes import Bayes
from .unpaired.category_effects import CategoryEffects
from .unpaired.cliffs_delta import CliffsDelta
from .unpaired.criteria_effects import CriteriaEffects
from .unpaired.distribution_shift import DistributionShift
from .unpaired.score_delta import ScoreDelta
from .unpaired.significance import Significance

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
    """Offer the early stops."""
    return [Threshold, Plateau]
