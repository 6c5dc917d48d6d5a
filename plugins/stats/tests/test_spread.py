"""Aggregates of one run: power, distribution, pass_rate, rationale_analysis."""

from __future__ import annotations

import json
import warnings
from math import isnan, sqrt

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dicast import ConfigError
from dicast_stats import Distribution, PassRate, Power, RationaleAnalysis

CLOSE = {"rel": 1e-9, "abs": 1e-12}
SCORES = st.lists(st.floats(-5, 5), min_size=3, max_size=40).filter(lambda scores: np.std(scores) > 1e-3)


def scored(*scores, **options):
    return [{"row": {"id": str(n)}, "metrics": {"scores": {"a": score}}, **options} for n, score in enumerate(scores)]


def only(document):
    (figures,) = document["criteria"].values()
    return figures


@pytest.mark.slow
@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(SCORES, st.floats(0.001, 0.25), st.floats(0.3, 0.99))
def test_power_is_statsmodels(aggregated, scores, alpha, target):
    from scipy import stats
    from statsmodels.stats.power import TTestPower

    values = np.array(scores)
    effect = values.mean() / values.std(ddof=1)
    assume(abs(effect) > 0.02)
    figures = only(aggregated(Power(alpha=alpha, target_power=target), scored(*scores)))
    assert figures["effect_size"] == pytest.approx(effect, **CLOSE)
    oracle = TTestPower()
    # The expected power includes the tail on the wrong side, which scipy may return as NaN.
    if isnan(oracle.power(abs(effect), len(scores), alpha)):
        return
    if effect > 0:
        assert figures["achieved_power"] == pytest.approx(oracle.power(effect, len(scores), alpha), rel=1e-9, abs=1e-11)
        needed = figures["required_samples"]
        if needed is not None and not isnan(power := oracle.power(effect, needed, alpha)):
            assert power == pytest.approx(target, rel=1e-9)
    else:
        assert figures["required_samples"] is figures["achieved_power"] is None
    least = figures["min_detectable_effect"] / values.std(ddof=1)
    power = oracle.power(least, len(scores), alpha)
    assert isnan(power) or power == pytest.approx(target, rel=1e-9)
    low, high = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (figures["ci_low"], figures["ci_high"]) == pytest.approx((low, high), **CLOSE)


def test_required_samples_are_those_of_statsmodels(aggregated):
    from statsmodels.stats.power import TTestPower

    scores = [0.1, 0.5, -0.2, 0.6, 0.3]
    figures = only(aggregated(Power(), scored(*scores)))
    effect = np.mean(scores) / np.std(scores, ddof=1)
    assert figures["required_samples"] == pytest.approx(
        TTestPower().solve_power(effect, alpha=0.05, power=0.8), rel=1e-6
    )
    assert "5 scores detect a difference" in figures["words"]


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(SCORES, st.integers(1, 20))
def test_distribution_is_numpy_s_and_scipy_s(aggregated, scores, bins):
    from scipy import stats

    figures = only(aggregated(Distribution(bins=bins), scored(*scores)))
    for share in (5, 25, 50, 75, 95):
        assert figures[f"p{share}"] == pytest.approx(np.percentile(scores, share), **CLOSE)
    assert figures["skewness"] == pytest.approx(stats.skew(scores, bias=False), **CLOSE)
    counts, edges = np.histogram(scores, bins)
    assert figures["histogram"]["counts"] == counts.tolist()
    assert figures["histogram"]["edges"] == pytest.approx(edges.tolist(), **CLOSE)


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=60), st.floats(0.05, 0.95))
def test_a_pass_rate_has_wilson_s_interval(aggregated, passes, line):
    from statsmodels.stats.proportion import proportion_confint, proportion_effectsize

    figures = only(aggregated(PassRate(threshold=0.5, at_least=line), scored(*map(float, passes))))
    low, high = proportion_confint(sum(passes), len(passes), method="wilson")
    assert (figures["ci_low"], figures["ci_high"]) == pytest.approx((max(0, low), min(1, high)), rel=1e-9, abs=1e-12)
    assert figures["effect_size"] == pytest.approx(
        proportion_effectsize(sum(passes) / len(passes), line), rel=1e-9, abs=1e-9
    )
    assert (figures["n"], figures["passes"], figures["design_effect"]) == (len(passes), sum(passes), 1.0)


def in_sessions(*sessions):
    return [
        {"row": {"id": f"{name}/{n}", "session_id": name}, "metrics": {"scores": {"a": float(passes)}}}
        for name, session in enumerate(sessions)
        for n, passes in enumerate(session)
    ]


def test_sessions_that_agree_count_once(aggregated):
    from statsmodels.stats.proportion import proportion_confint

    figures = only(
        aggregated(PassRate(threshold=0.5), in_sessions([1] * 5, [0] * 5, [1] * 5, [1] * 5, [0] * 5, [1] * 5))
    )
    assert (figures["sessions"], figures["n"]) == (6, 30)
    assert figures["design_effect"] == pytest.approx(
        6.0, rel=1e-9
    )  # 6/5 · 5: of each session's five verdicts one counts
    assert figures["ci_low"] == pytest.approx(proportion_confint(2 / 3 * 5, 5, method="wilson")[0], rel=1e-9)
    all_pass = only(aggregated(PassRate(threshold=0.5), in_sessions([1] * 5, [1] * 5)))
    assert all_pass["design_effect"] == 5.0
    single = only(aggregated(PassRate(threshold=0.5), in_sessions([1, 0, 1])))
    assert (single["ci_low"], single["design_effect"]) == (None, None)
    assert "one session" in single["words"]


def test_flags_win_and_what_is_missing_does_not_pass(aggregated):
    records = [
        {"metrics": {"scores": {"a": 0.9}, "score_flags": {"a": False}}},
        {"metrics": {"scores": {"a": 0.1}, "score_flags": {"a": True}}},
        {"metrics": {"scores": {"a": None}}},
        {"metrics": {"scores": {"a": 0.9}}},
    ]
    figures = only(aggregated(PassRate(threshold=0.5), records))
    assert (figures["n"], figures["passes"], figures["missing"]) == (4, 2, 1)
    assert only(aggregated(PassRate(), records))["passes"] == 1


def rationales(*scored_texts):
    return [{"row": {"id": str(n)}, "response": {"content": json.dumps({"score": score, "rationale": text}), "metrics": {}}, "metrics": {}}
            for n, (score, text) in enumerate(scored_texts)]  # fmt: skip


def test_rationales_of_low_and_high_scores_are_separated(aggregated):
    records = rationales(
        (1, "The refund is perhaps missing, the refund."),
        (2, "No refund at all"),
        (4, "Clearly polite and complete."),
        (5, "Polite, and it might help."),
        (3, "In between."),
    )
    figures = only(aggregated(RationaleAnalysis(), records))
    assert (figures["n"], figures["low"]["n"], figures["high"]["n"]) == (5, 2, 2)
    assert figures["low"]["keywords"][0] == {"word": "refund", "count": 3}
    assert figures["high"]["keywords"][0] == {"word": "polite", "count": 2}
    assert (figures["low"]["hedge_rate"], figures["low"]["confident_rate"]) == (0.5, 0.0)
    assert (figures["high"]["hedge_rate"], figures["high"]["confident_rate"]) == (0.5, 0.5)
    assert "low scores mention refund" in figures["words"]


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 90)), min_size=4, max_size=30))
def test_length_and_score_correlate_as_scipy_says(aggregated, scored_lengths):
    from scipy import stats

    figures = only(
        aggregated(RationaleAnalysis(), rationales(*((score, "x" * length) for score, length in scored_lengths)))
    )
    scores, lengths = zip(*scored_lengths, strict=True)
    if len(set(scores)) > 1 and len(set(lengths)) > 1:
        test = stats.pearsonr(lengths, scores)
        assert figures["length_score_correlation"] == pytest.approx(test.statistic, rel=1e-9, abs=1e-9)
        if abs(test.statistic) < 0.999999:
            assert (figures["ci_low"], figures["ci_high"]) == pytest.approx(
                tuple(test.confidence_interval()), rel=1e-8, abs=1e-8
            )
    else:
        assert figures["effect_size"] is None


def test_without_rationales_it_says_where_they_are_looked_for(aggregated):
    assert "rationale" in aggregated(RationaleAnalysis(), scored(1.0))["reason"]


LITTLE = [
    [],
    [0.5],
    [None, None],
    [0.5, 0.5, 0.5],
    [0.5, None, "0.7"],
    [1e308, -1e308, 1e308],
    [1e-320, 2e-320, 0.0],
    [float("nan")],
]


@pytest.mark.parametrize(
    "component",
    [Power(), Distribution(), PassRate(threshold=0.5), RationaleAnalysis()],
    ids=lambda component: component.name,
)
@pytest.mark.parametrize("scores", LITTLE, ids=str)
def test_little_is_no_error_and_what_is_not_defined_is_null(component, scores, aggregated):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        document = aggregated(component, scored(*scores, response={"content": '{"rationale": "So."}'}))
    json.dumps(document, allow_nan=False)
    for figures in document["criteria"].values():
        assert isinstance(figures["words"], str)
        assert {"n", "effect_size", "ci_low", "ci_high"} <= figures.keys()


def test_options_out_of_their_bounds_are_refused():
    for wrong in (
        lambda: Power(alpha=0.3),
        lambda: Power(target_power=1),
        lambda: RationaleAnalysis(low_max=4),
        lambda: Distribution(bins=0),
    ):
        with pytest.raises(ConfigError):
            wrong()


def test_a_mean_s_interval_is_t_s(aggregated):
    from scipy import stats

    figures = only(aggregated(Distribution(), scored(1.0, 2.0, 4.0)))
    reach = stats.t.ppf(0.975, 2) * np.std([1, 2, 4], ddof=1) / sqrt(3)
    assert (figures["ci_low"], figures["ci_high"]) == pytest.approx((7 / 3 - reach, 7 / 3 + reach), **CLOSE)
