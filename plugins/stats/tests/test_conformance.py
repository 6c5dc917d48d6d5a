"""Conformance of the components to the contract."""

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


class TestPower(AggregateConformance):
    aggregate = "stats/power"
    options = {"alpha": 0.01, "target_power": 0.9, "null_mean": 0.5, "criteria": ["a"]}


class TestDistribution(AggregateConformance):
    aggregate = "stats/distribution"
    options = {"bins": 4, "source_field": "marks"}


class TestPassRate(AggregateConformance):
    aggregate = "stats/pass_rate"
    options = {"threshold": 0.6, "at_least": 0.9, "session_field": "thread"}


class TestRationaleAnalysis(AggregateConformance):
    aggregate = "stats/rationale_analysis"
    options = {"low_max": 0.3, "high_min": 0.7, "min_length": 4}


class TestLeaderboard(AggregateConformance):
    aggregate = "stats/leaderboard"
    options = {"first": "one", "second": "two", "criterion": "a", "resamples": 200}


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


class TestBayes(ComparisonConformance):
    comparison = "stats/bayes"
    options = {"credible_interval": 0.9, "criteria": ["a"]}


class TestPractical(ComparisonConformance):
    comparison = "stats/practical"
    options = {"threshold": 0.1, "success_threshold": 0.5}


class TestAssumptions(ComparisonConformance):
    comparison = "stats/assumptions"
    options = {"min_samples": 5, "alpha": 0.01}


class TestDistributionShift(ComparisonConformance):
    comparison = "stats/distribution_shift"
    options = {"bins": 5, "adjustment": "fdr", "min_samples": 3}


class TestRefereeAlignment(ComparisonConformance):
    comparison = "stats/referee_alignment"
    options = {"referee_fields": ["one", "two"], "criterion": "a", "within": 0.5}


class TestOutliers(ComparisonConformance):
    comparison = "stats/outliers"
    options = {"top_n": 3}


class TestFlips(ComparisonConformance):
    comparison = "stats/flips"
    options = {"pass_at": 0.7, "fail_at": 0.3, "major": 0.5, "listed": 2}


class TestCategoryEffects(ComparisonConformance):
    comparison = "stats/category_effects"
    options = {"category_field": "kind", "adjustment": "none", "min_samples": 3}


class TestCriteriaEffects(ComparisonConformance):
    comparison = "stats/criteria_effects"
    options = {"adjustment": "bonferroni", "min_samples": 3}


class TestThreshold(EarlyStopConformance):
    early_stop = "stats/threshold"
    options = {"metric": "scores.a", "threshold": 0.8, "comparison": "lt", "min_rows": 3, "label": "enough"}


class TestPlateau(EarlyStopConformance):
    early_stop = "stats/plateau"
    options = {"metric": "score", "window": 3, "threshold": 0.001}
