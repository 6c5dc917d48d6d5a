"""Comparisons of two runs over any subjects: equal to scipy on random scores, and defined for runs with little to compare."""

from __future__ import annotations

import json
import warnings
from math import inf, isnan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicast import ConfigError, Results
from dicast_stats import Assumptions, Bayes, CategoryEffects, CriteriaEffects, DistributionShift, Flips, Paired

ALL = (Bayes(), Assumptions(), DistributionShift(), CriteriaEffects())
CLOSE = {"rel": 1e-9, "abs": 1e-12}
SCORES = st.lists(st.floats(-5, 5), min_size=3, max_size=40).filter(lambda scores: np.std(scores) > 1e-3)
GRADES = st.lists(st.integers(1, 5).map(float), min_size=3, max_size=40)


def only(comparison):
    (figures,) = comparison["criteria"].values()
    return figures


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(SCORES, SCORES, st.floats(0.5, 0.999))
def test_bayes_is_the_t_posterior_with_welch_s_error(before, after, width):
    from scipy import stats

    a, b = np.array(before), np.array(after)
    figures = only(Bayes(credible_interval=width).compare(*runs(before, after)))
    error = sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))
    df = stats.ttest_ind(b, a, equal_var=False).df
    posterior = stats.t(df, b.mean() - a.mean(), error)
    assert figures["prob_variant_gt_baseline"] == pytest.approx(posterior.sf(0), **CLOSE)
    assert figures["credible_interval"] == pytest.approx(list(posterior.interval(width)), **CLOSE)
    assert [figures["ci_low"], figures["ci_high"]] == figures["credible_interval"]
    assert figures["n"] == len(before) + len(after)


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(SCORES, SCORES)
def test_assumptions_are_shapiro_s_and_levene_s_tests(before, after):
    from scipy import stats

    figures = only(Assumptions().compare(*runs(before, after)))
    for side, scores in (("baseline", before), ("variant", after)):
        test = stats.shapiro(scores)
        assert (figures[side]["statistic"], figures[side]["p_value"]) == pytest.approx(tuple(test), **CLOSE)
        assert figures[side]["is_normal"] is bool(figures[side]["p_value"] >= 0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where all deviations from the medians are alike
        test = stats.levene(before, after, center="median")
    expected = [None if isnan(value) else pytest.approx(value, **CLOSE) for value in (test.statistic, test.pvalue)]
    assert [figures["variance"]["statistic"], figures["variance"]["p_value"]] == expected or test.statistic == inf
    assert figures["ci_low"] < figures["effect_size"] < figures["ci_high"]
    assert figures["effect_size"] == pytest.approx(np.std(after, ddof=1) / np.std(before, ddof=1), **CLOSE)


def test_the_interval_of_the_ratio_of_deviations_covers_it():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        figures = only(Assumptions().compare(*runs(rng.normal(0, 1, 12).tolist(), rng.normal(0, 2, 9).tolist())))
        covered += figures["ci_low"] <= 2 <= figures["ci_high"]
    assert 0.92 <= covered / 400 <= 0.98


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(GRADES, GRADES)
def test_rank_tests_are_scipy_s(before, after):
    from scipy import stats

    figures = only(CriteriaEffects().compare(*runs(before, after)))
    if len({*before, *after}) == 1:
        assert (figures["p_value"], figures["effect_size"]) == (1.0, 0.0)
        return
    test = stats.mannwhitneyu(after, before)
    assert (figures["u"], figures["p_value"]) == pytest.approx((test.statistic, test.pvalue), **CLOSE)
    assert figures["effect_size"] == pytest.approx(2 * test.statistic / (len(before) * len(after)) - 1, **CLOSE)
    if figures["ci_low"] is not None:
        assert -1 <= figures["ci_low"] <= figures["effect_size"] <= figures["ci_high"] <= 1


@pytest.mark.parametrize(
    ("before", "after"), [([0.1, 0.4, 0.4, 0.8], [0.3, 0.4, 0.9]), ([1, 2, 3, 4, 5], [2, 3, 3, 6])]
)
def test_the_interval_of_cliff_s_delta_is_that_of_its_variance(before, after):
    n, m, z = len(after), len(before), 1.959963984540054
    signs = np.sign(np.subtract.outer(after, before))
    delta = signs.mean()
    rows, columns = ((signs.mean(axis) - delta) ** 2 for axis in (1, 0))
    variance = (m**2 * rows.sum() + n**2 * columns.sum() - ((signs - delta) ** 2).sum()) / (n * m * (n * m - 1))
    middle, reach = delta - delta**3, z * sqrt(variance * ((1 - delta**2) ** 2 + z**2 * variance))
    figures = only(CriteriaEffects().compare(*runs(before, after)))
    bounds = [(middle + side * reach) / (1 - delta**2 + z**2 * variance) for side in (-1, 1)]
    assert [figures["ci_low"], figures["ci_high"]] == pytest.approx(bounds, **CLOSE)


def test_the_interval_of_cliff_s_delta_covers_it():
    from scipy import stats

    rng = np.random.default_rng(2)
    true = 2 * stats.norm.cdf(0.6 / sqrt(2)) - 1
    covered = 0
    for _ in range(400):
        figures = only(CriteriaEffects().compare(*runs(rng.normal(0, 1, 25).tolist(), rng.normal(0.6, 1, 30).tolist())))
        covered += figures["ci_low"] <= true <= figures["ci_high"]
    assert 0.92 <= covered / 400 <= 0.985


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(GRADES, GRADES, st.integers(2, 12))
def test_distribution_shift_is_scipy_s(before, after, bins):
    from scipy import stats
    from scipy.spatial.distance import jensenshannon

    figures = only(DistributionShift(bins=bins).compare(*runs(before, after)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where the exact p-value cannot be computed
        test = stats.ks_2samp(after, before)
    assert (figures["ks_statistic"], figures["ks_p_value"]) == pytest.approx((test.statistic, test.pvalue), **CLOSE)
    ends = min(*before, *after), max(*before, *after)
    if ends[0] < ends[1]:
        first, second = (np.histogram(side, bins, ends)[0] for side in (before, after))
        assert figures["js_divergence"] == pytest.approx(jensenshannon(first, second, 2) ** 2, **CLOSE)
    assert 0 <= figures["js_divergence"] <= 1 + 1e-12


@pytest.mark.parametrize(("adjustment", "method"), [("holm", "holm"), ("fdr", "fdr_bh"), ("bonferroni", "bonferroni")])
@pytest.mark.parametrize("component", [CriteriaEffects, DistributionShift])
def test_p_values_are_adjusted_over_all_criteria(component, adjustment, method, results):
    from statsmodels.stats.multitest import multipletests

    rng = np.random.default_rng(3)
    before = {name: rng.normal(0, 1, 20).tolist() for name in "abcd"}
    after = {name: rng.normal(place / 3, 1, 20).tolist() for place, name in enumerate("abcd")}
    criteria = component(adjustment=adjustment).compare(results(before), results(after))["criteria"]
    expected = multipletests([criteria[name]["p_value"] for name in "abcd"], method=method)[1]
    assert [criteria[name]["adjusted_p_value"] for name in "abcd"] == pytest.approx(expected.tolist(), **CLOSE)


@pytest.mark.parametrize(("adjustment", "method"), [("holm", "holm"), ("fdr", "fdr_bh"), ("bonferroni", "bonferroni")])
def test_each_test_of_assumptions_is_adjusted_over_all_criteria_and_decides_by_that(adjustment, method, results):
    from statsmodels.stats.multitest import multipletests

    rng = np.random.default_rng(3)
    names = [f"c{n:02}" for n in range(40)]
    before = {name: rng.normal(0, 1, 20).tolist() for name in names} | {"wide": rng.normal(0, 1, 20).tolist()}
    after = {name: rng.normal(0, 1, 20).tolist() for name in names} | {"wide": rng.normal(0, 30, 20).tolist()}
    criteria = Assumptions(adjustment=adjustment).compare(results(before), results(after))["criteria"]
    by_luck = 0
    for part, holds in (("baseline", "is_normal"), ("variant", "is_normal"), ("variance", "equal_variance")):
        tests = [test[part] for test in criteria.values()]
        expected = multipletests([test["p_value"] for test in tests], method=method)[1]
        assert [test["adjusted_p_value"] for test in tests] == pytest.approx(expected.tolist(), **CLOSE)
        assert [test[holds] for test in tests] == [p_value >= 0.05 for p_value in expected]
        by_luck += sum(test["p_value"] < 0.05 <= test["adjusted_p_value"] for test in tests)
    assert by_luck
    assert criteria["wide"]["words"] == "the variances differ (at 0.05)"
    assert {criteria[name]["words"] for name in names} == {"no evidence against a t-test (at 0.05)"}


@pytest.mark.parametrize(("adjustment", "method"), [("holm", "holm"), ("fdr", "fdr_bh"), ("bonferroni", "bonferroni")])
@pytest.mark.parametrize("component", [Paired, Flips])
def test_each_test_of_pairs_is_adjusted_over_all_criteria(component, adjustment, method, results):
    from statsmodels.stats.multitest import multipletests

    rng = np.random.default_rng(6)
    before = {name: rng.integers(1, 6, 40).tolist() for name in "abcd"} | {"none": [None] * 40}
    after = {
        name: [min(5, score + (rng.random() < place / 4)) for score in before[name]]
        for place, name in enumerate("abcd")
    }
    after["none"] = [None] * 40
    flags = [{name: [(score or 0) > 3 for score in side[name]] for name in "abcd"} for side in (before, after)]
    flags = [side | {"none": [None] * 40} for side in flags]
    criteria = component(adjustment=adjustment).compare(results(before, flags[0]), results(after, flags[1]))["criteria"]
    for name in ("p_value", "wilcoxon_p", "sign_p", "mcnemar_p") if component is Paired else ("p_value",):
        tested = [criterion for criterion in "abcd" if criteria[criterion][name] is not None]
        assert len(tested) >= 3
        expected = multipletests([criteria[criterion][name] for criterion in tested], method=method)[1]
        assert [criteria[criterion][f"adjusted_{name}"] for criterion in tested] == pytest.approx(
            expected.tolist(), **CLOSE
        )
        assert criteria["none"][f"adjusted_{name}"] is None
    with pytest.raises(ConfigError, match="unknown adjustment"):
        component(adjustment="hollm")


def by_category(scores):
    records = [
        {"row": {"id": str(n), "category": kind}, "metrics": {"score": score}} for n, (kind, score) in enumerate(scores)
    ]
    return Results("run", "name", lambda: iter([(str(n), record) for n, record in enumerate(records)]))


def test_categories_are_tested_one_by_one():
    rng = np.random.default_rng(4)
    before = [(kind, float(score)) for kind in ("easy", "hard") for score in rng.normal(0.5, 0.1, 15)]
    after = [("easy", score) for kind, score in before if kind == "easy"] + [
        ("hard", score - 0.3) for kind, score in before if kind == "hard"
    ]
    comparison = CategoryEffects().compare(by_category([*before, ("old", 1.0)]), by_category([*after, (None, 1.0)]))
    assert set(comparison["categories"]) == {"easy", "hard"}
    assert comparison["categories"]["easy"]["effect_size"] == 0
    assert comparison["categories"]["hard"]["adjusted_p_value"] < 0.001
    assert comparison["categories"]["hard"]["words"].startswith("worse: delta -")
    assert (comparison["only_in_baseline"], comparison["without"]) == (["old"], 1)


def test_rows_without_categories_are_reported(results):
    comparison = CategoryEffects(category_field="topic").compare(results({"a": [1.0]}), results({"a": [1.0]}))
    assert "'topic'" in comparison["reason"]


LITTLE = [
    [],
    [0.5],
    [None, None],
    [0.5, 0.5, 0.5],
    [0.5, None, 0.5],
    [float("nan"), 1.0],
    [1e308, -1e308, 1e308],
    [1e-320, 2e-320, 0.0],
]


@pytest.mark.parametrize("component", ALL, ids=lambda component: component.name)
@pytest.mark.parametrize("before", LITTLE, ids=str)
@pytest.mark.parametrize("after", LITTLE, ids=str)
def test_little_to_compare_is_no_error_and_what_is_not_defined_is_null(component, before, after, results):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        comparison = component.compare(results({"a": before}), results({"a": after}))
    json.dumps(comparison, allow_nan=False)
    for figures in comparison["criteria"].values():
        assert isinstance(figures["words"], str)
        assert {"n", "effect_size", "ci_low", "ci_high"} <= figures.keys()


@pytest.mark.parametrize("wrong", [{"credible_interval": 0.4}, {"credible_interval": 1}])
def test_a_credible_interval_is_between_half_and_nearly_all(wrong):
    with pytest.raises(ConfigError):
        Bayes(**wrong)


def runs(before, after):
    def make_run(scores):
        records = [
            (str(n), {"row": {"id": str(n)}, "metrics": {"scores": {"a": score}}}) for n, score in enumerate(scores)
        ]
        return Results("run", "name", lambda: iter(records))

    return make_run(before), make_run(after)


@pytest.mark.parametrize("size", [1e-250, 1e-25, 1e-12, 1e12, 1e250])
def test_whether_scores_are_normal_does_not_depend_on_their_size(results, size):
    from scipy import stats

    grades = np.array([1, 1, 1, 1, 2, 2, 3, 5, 9, 9.5])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figures = only(Assumptions().compare(results({"a": grades * size}), results({"a": grades})))
    assert figures["baseline"]["p_value"] == pytest.approx(stats.shapiro(grades).pvalue, rel=1e-9)
    assert figures["baseline"]["is_normal"] is False
