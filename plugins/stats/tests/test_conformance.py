"""The components keep the contract."""

from __future__ import annotations

from dicast.testing import Conformance


class AggregateChecks(Conformance):
    kind = "aggregate"


class TestScoreStats(AggregateChecks):
    aggregate = "stats/score_stats"
    options = {"source_field": "marks", "ddof": 1}


class TestRecommendation(AggregateChecks):
    aggregate = "stats/recommendation"
    options = {"min_samples": 3, "improvement_margin": 0.1}


class TestVariantRanking(AggregateChecks):
    aggregate = "stats/variant_ranking"
    options = {"threshold": 0.6, "weight_pass": 2}


class TestCostSummary(AggregateChecks):
    aggregate = "stats/cost_summary"


class TestLatencySummary(AggregateChecks):
    aggregate = "stats/latency_summary"


class TestAgreement(AggregateChecks):
    aggregate = "stats/agreement"
    options = {"criteria": ["a", "b"], "min_items": 3}


class ComparisonChecks(Conformance):
    kind = "comparison"


class TestScoreDelta(ComparisonChecks):
    comparison = "stats/score_delta"
    options = {"metric": "median", "criteria": ["a"]}


class TestCliffsDelta(ComparisonChecks):
    comparison = "stats/cliffs_delta"


class TestSignificance(ComparisonChecks):
    comparison = "stats/significance"
    options = {"equal_var": True, "adjustment": "holm", "family_size": 5, "min_samples": 3}


class TestPaired(ComparisonChecks):
    comparison = "stats/paired"
    options = {"min_samples": 5, "criteria": ["a"]}


class EarlyStopChecks(Conformance):
    kind = "early_stop"


class TestThreshold(EarlyStopChecks):
    early_stop = "stats/threshold"
    options = {"metric": "scores.a", "threshold": 0.8, "comparison": "lt", "min_rows": 3, "label": "enough"}


class TestPlateau(EarlyStopChecks):
    early_stop = "stats/plateau"
    options = {"metric": "score", "window": 3, "threshold": 0.001}
