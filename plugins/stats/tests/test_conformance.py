"""The components keep the contract."""

from __future__ import annotations

from dicast.testing import AggregateConformance, ComparisonConformance, EarlyStopConformance


class TestScoreStats(AggregateConformance):
    aggregate = "stats/score_stats"
    options = {"source_field": "marks", "ddof": 1}


class TestRecommendation(AggregateConformance):
    aggregate = "stats/recommendation"
    options = {"min_samples": 3, "improvement_margin": 0.1}


class TestVariantRanking(AggregateConformance):
    aggregate = "stats/variant_ranking"
    options = {"threshold": 0.6, "weight_pass": 2}


class TestCostSummary(AggregateConformance):
    aggregate = "stats/cost_summary"


class TestLatencySummary(AggregateConformance):
    aggregate = "stats/latency_summary"


class TestAgreement(AggregateConformance):
    aggregate = "stats/agreement"
    options = {"criteria": ["a", "b"], "min_items": 3}


class TestScoreDelta(ComparisonConformance):
    comparison = "stats/score_delta"
    options = {"metric": "median", "criteria": ["a"]}


class TestCliffsDelta(ComparisonConformance):
    comparison = "stats/cliffs_delta"


class TestSignificance(ComparisonConformance):
    comparison = "stats/significance"
    options = {"equal_var": True, "adjustment": "holm", "family_size": 5, "min_samples": 3}


class TestPaired(ComparisonConformance):
    comparison = "stats/paired"
    options = {"min_samples": 5, "criteria": ["a"]}


class TestThreshold(EarlyStopConformance):
    early_stop = "stats/threshold"
    options = {"metric": "scores.a", "threshold": 0.8, "comparison": "lt", "min_rows": 3, "label": "enough"}


class TestPlateau(EarlyStopConformance):
    early_stop = "stats/plateau"
    options = {"metric": "score", "window": 3, "threshold": 0.001}
