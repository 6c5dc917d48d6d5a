"""Arithmetic of a judge card, against statsmodels, krippendorff, scipy and formulas written out again."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicast_trust.statistics.binomial import share_interval
from dicast_trust.statistics.chance_agreement import ac1, alpha, auc, balanced, kappa, newcombe, resampled, tables
from dicast_trust.statistics.forecasts import calibration
from dicast_trust.statistics.regression import holm, linear, logit, p_value

CLOSE = {"rel": 1e-9, "abs": 1e-12}
votes = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=60)


def table(pairs):
    return tables([judged for judged, _ in pairs], [gold for _, gold in pairs], range(len(pairs))).sum(0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of statsmodels, where a rater has one value only
@settings(max_examples=settings.default.max_examples, deadline=None)
@given(votes)
def test_kappa_and_alpha_are_those_of_other_libraries(pairs):
    import krippendorff
    from statsmodels.stats.inter_rater import cohens_kappa

    counts, first, second = table(pairs), *([int(vote) for vote in side] for side in zip(*pairs, strict=True))
    if len({*first, *second}) < 2:
        assert math.isnan(kappa(counts))
        assert math.isnan(alpha(counts))
        return
    reference = krippendorff.alpha([first, second], level_of_measurement="nominal", value_domain=[0, 1])
    assert float(alpha(counts)) == pytest.approx(reference, **CLOSE)
    if not (len(set(first)) == 1 and set(first) == set(second)):
        assert float(kappa(counts)) == pytest.approx(cohens_kappa(counts.reshape(2, 2)).kappa, **CLOSE)


@settings(max_examples=settings.default.max_examples, deadline=None)
@given(votes)
def test_ac1_is_gwets(pairs):
    n = len(pairs)
    agreed = sum(first == second for first, second in pairs) / n
    share = sum(first + second for first, second in pairs) / (2 * n)
    chance = 2 * share * (1 - share)
    assert float(ac1(table(pairs))) == pytest.approx((agreed - chance) / (1 - chance), **CLOSE)


def test_the_interval_of_kappa_is_on_fishers_scale_and_knows_sessions():
    from statsmodels.stats.inter_rater import cohens_kappa

    rng = np.random.default_rng(1)
    gold = rng.random(400) < 0.5
    judged = np.where(rng.random(400) < 0.85, gold, ~gold)
    value, (low, high) = resampled(tables(judged, gold, range(400)), kappa)
    reference = cohens_kappa(table(list(zip(judged, gold, strict=True))).reshape(2, 2))
    spread = reference.std_kappa
    expected = [math.tanh(math.atanh(value) + sign * 1.959964 * spread / (1 - value**2)) for sign in (-1, 1)]
    assert (low, high) == pytest.approx(tuple(expected), abs=0.008)
    doubled = resampled(tables([*judged, *judged], [*gold, *gold], [*range(400), *range(400)]), kappa)
    assert doubled[0] == pytest.approx(value)
    assert doubled[1] == pytest.approx((low, high), abs=0.005)  # twice the same says nothing new


def test_perfect_agreement_has_the_interval_1_to_1_and_one_class_has_none():
    assert resampled(tables([True, False] * 50, [True, False] * 50, range(100)), kappa) == (1.0, (1.0, 1.0))
    assert resampled(tables([True] * 10, [True] * 10, range(10)), kappa) == (None, None)


@settings(max_examples=3 * settings.default.max_examples // 5, deadline=None)
@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_balanced_accuracy_has_movers_interval(a, b, c, d):
    from statsmodels.stats.proportion import proportion_confint

    value, ends = balanced(np.array([[a, b], [c, d]], float))
    if not a + b or not c + d:
        assert (value, ends) == (None, None)
        return
    (l1, u1), (l2, u2) = (proportion_confint(k, n, method="wilson") for k, n in ((a, a + b), (d, c + d)))
    p, q = a / (a + b), d / (c + d)
    assert value == pytest.approx((p + q) / 2, **CLOSE)
    low = value - math.hypot(p - l1, q - l2) / 2
    assert ends == pytest.approx((low, value + math.hypot(u1 - p, u2 - q) / 2), rel=1e-6, abs=1e-9)
    assert ends[0] + 1e-12 >= 0
    assert ends[1] <= 1 + 1e-12


@settings(max_examples=3 * settings.default.max_examples // 5, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=50))
def test_auc_is_the_mann_whitney_statistic(pairs):
    from scipy import stats

    scores, gold = [float(score) for score, _ in pairs], [good for _, good in pairs]
    value, ends = auc(scores, gold)
    good_scores, bad_scores = (
        [s for s, g in zip(scores, gold, strict=True) if g],
        [s for s, g in zip(scores, gold, strict=True) if not g],
    )
    if not good_scores or not bad_scores:
        assert value is None
        return
    assert value == pytest.approx(
        stats.mannwhitneyu(good_scores, bad_scores).statistic / len(good_scores) / len(bad_scores), **CLOSE
    )
    assert ends is None or 0 <= ends[0] <= value <= ends[1] <= 1


@settings(max_examples=3 * settings.default.max_examples // 5, deadline=None)
@given(st.integers(0, 30), st.integers(1, 30), st.integers(0, 30), st.integers(1, 30))
def test_differences_of_shares_have_newcombes_interval(k, misses, m, rest):
    from statsmodels.stats.proportion import confint_proportions_2indep

    result = newcombe((k, k + misses), (m, m + rest))
    reference = confint_proportions_2indep(k, k + misses, m, m + rest, method="newcomb", compare="diff")
    assert result[1] == pytest.approx(reference, rel=1e-6, abs=1e-9)


@settings(max_examples=2 * settings.default.max_examples // 5, deadline=None)
@given(st.integers(0, 2**31), st.integers(20, 60))
def test_logit_with_clustered_errors_is_that_of_statsmodels(seed, pairs):
    import statsmodels.api as sm

    rng = np.random.default_rng(seed)
    design = np.column_stack([np.ones(2 * pairs), rng.choice([-1.0, 1.0], 2 * pairs), rng.normal(size=2 * pairs)])
    outcomes = (rng.random(2 * pairs) < 1 / (1 + np.exp(-design @ [0.3, 0.8, 0.4]))).astype(float)
    clusters = np.repeat(np.arange(pairs), 2)
    fit = logit(design, outcomes, clusters.tolist())
    if fit is None:
        return
    reference = sm.Logit(outcomes, design).fit(
        disp=0, maxiter=200, tol=1e-12, cov_type="cluster", cov_kwds={"groups": clusters}
    )
    assert fit.coefficients == pytest.approx(reference.params, rel=1e-6, abs=1e-8)
    assert fit.errors == pytest.approx(reference.bse, rel=1e-6, abs=1e-8)


def test_least_squares_with_clustered_errors_are_those_of_statsmodels():
    import statsmodels.api as sm

    rng = np.random.default_rng(4)
    design, clusters = np.column_stack([np.ones(90), rng.normal(size=(90, 2))]), np.repeat(np.arange(30), 3)
    outcomes = design @ [0.2, 0.5, -0.1] + rng.normal(size=90) + np.repeat(rng.normal(size=30), 3)
    fit = linear(design, outcomes, clusters.tolist())
    reference = sm.OLS(outcomes, design).fit(cov_type="cluster", cov_kwds={"groups": clusters})
    assert fit.coefficients == pytest.approx(reference.params, **CLOSE)
    assert fit.errors == pytest.approx(reference.bse, **CLOSE)
    assert p_value(fit.z(1)) == pytest.approx(reference.pvalues[1], rel=1e-6)


def test_what_tells_outcomes_apart_without_an_error_has_no_fit():
    design = np.column_stack([np.ones(40), np.repeat([-1.0, 1.0], 20)])
    assert logit(design, np.repeat([0.0, 1.0], 20), range(40)) is None
    assert logit(np.ones((40, 2)), np.repeat([0.0, 1.0], 20), range(40)) is None


def test_calibration_has_the_figures_of_its_definitions():
    import statsmodels.api as sm

    rng = np.random.default_rng(5)
    chances = rng.uniform(0.05, 0.95, 2_000)
    outcomes = (rng.random(2_000) < chances).astype(float)
    figures, reasons = calibration(chances, outcomes)
    assert not reasons
    reference = sm.Logit(outcomes, sm.add_constant(np.log(chances / (1 - chances)))).fit(disp=0)
    assert (figures["intercept"], figures["slope"]) == pytest.approx(tuple(reference.params), rel=1e-6)
    assert figures["brier"] == pytest.approx(((chances - outcomes) ** 2).mean())
    assert figures["skill"] == pytest.approx(1 - figures["brier"] / outcomes.var())
    parts = np.array_split(np.argsort(chances), 10)
    ece = sum(abs(chances[part].sum() - outcomes[part].sum()) for part in parts) / 2_000
    assert figures["ece"] == pytest.approx(ece)
    assert 0.01 < figures["ece"] < figures["ece_calibrated"] < 0.06
    overconfident, _ = calibration(np.clip(chances * 1.6 - 0.3, 0.02, 0.98), outcomes)
    assert overconfident["ece"] > overconfident["ece_calibrated"]
    assert overconfident["slope"] < 0.9


def test_one_class_has_neither_skill_nor_slope():
    figures, reasons = calibration(np.linspace(0.1, 0.9, 30), np.ones(30))
    assert (figures["skill"], figures["slope"], figures["intercept"]) == (None, None, None)
    assert set(reasons) == {"skill", "slope"}


@pytest.mark.slow
@settings(max_examples=3 * settings.default.max_examples // 5, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_that_of_statsmodels(p_values):
    from statsmodels.stats.multitest import multipletests

    assert holm(p_values) == pytest.approx(list(multipletests(p_values, method="holm")[1]), **CLOSE)


@settings(max_examples=3 * settings.default.max_examples // 5, deadline=None)
@given(st.integers(0, 50), st.integers(0, 50))
def test_wilson_is_that_of_scipy(k, rest):
    from scipy import stats

    if k + rest:
        reference = stats.binomtest(k, k + rest).proportion_ci(method="wilson")
        assert share_interval(k, k + rest) == pytest.approx((reference.low, reference.high), rel=1e-6, abs=1e-9)
