"""Bounds and tests of rates, against statsmodels, scipy.stats, and arithmetic done with fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast_trust.statistics.binomial import clustered_upper, least_labels, most_errors, passes, share_interval, upper
from dicast_trust.statistics.e_process import ln_above, ln_below

RATES = st.floats(0.01, 0.99)


def counts(most):
    return st.integers(1, most).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.parametrize(("errors", "n", "bound"), [(0, 22, 0.099372), (1, 38, 0.098547), (5, 100, 0.090771)])
def test_published_upper_bounds(errors, n, bound):
    assert round(upper(errors, n, 0.1), 6) == bound


def test_most_errors_of_200_at_a_tenth():
    assert most_errors(200, 0.1, 0.1) == 14
    assert most_errors(21, 0.1, 0.1) is None
    assert least_labels(1 - 0.9, 0.1) == 22


@given(counts(300), st.floats(0.01, 0.4))
def test_upper_bound_is_that_of_clopper_and_pearson(count, alpha):
    from statsmodels.stats.proportion import proportion_confint

    errors, n = count
    assert upper(errors, n, alpha) == pytest.approx(proportion_confint(errors, n, 2 * alpha, "beta")[1], abs=1e-9)


@given(counts(200), RATES, RATES)
def test_test_passes_exactly_where_the_bound_is_at_most_the_risk(count, risk, alpha):
    from scipy import stats

    errors, n = count
    p = stats.binom.cdf(errors, n, risk)
    if abs(p - alpha) > 1e-9:
        assert bool(passes(errors, n, risk, alpha)) == (p <= alpha) == (upper(errors, n, alpha) <= risk)


@given(counts(60), st.integers(1, 99), st.integers(1, 99))
def test_exact_test_agrees_with_fractions(count, risk, alpha):
    (errors, n), r, a = count, Fraction(risk, 100), Fraction(alpha, 100)
    tail = sum(math.comb(n, k) * r**k * (1 - r) ** (n - k) for k in range(errors + 1))
    if abs(tail - a) > Fraction(1, 10**9):
        assert bool(passes(errors, n, float(r), float(a))) == (tail <= a)


@given(counts(300), st.floats(0.01, 0.5))
def test_bound_lies_between_the_share_and_1_and_grows_with_errors(count, alpha):
    errors, n = count
    bound = upper(errors, n, alpha)
    assert errors / n <= bound + 1e-12 <= 1 + 1e-12
    assert errors == n or bound <= upper(errors + 1, n, alpha)
    assert upper(errors, n + 1, alpha) <= bound


def test_sessions_bound_of_60_turns_without_an_error():
    assert round(clustered_upper([0] * 60, [turn // 3 for turn in range(60)], 0.1), 6) == 0.039474


def by_loops(errors, sessions, alpha):
    """Compute the bound of Korn and Graubard again, with loops."""
    from scipy import stats

    n, names = len(errors), sorted(set(sessions))
    groups, k = len(names), sum(errors)
    p = k / n
    squares = sum(sum(e - p for e, s in zip(errors, sessions, strict=True) if s == name) ** 2 for name in names)
    v = groups / (groups - 1) * squares / n**2
    near = (k + 0.5) / (n + 1)
    design = max(1.0, v * n / (near * (1 - near)))
    f = (stats.t.ppf(1 - alpha, n - 1) / stats.t.ppf(1 - alpha, groups - 1)) ** 2
    effective = f * n / design
    errors_left = effective - p * effective
    return 1.0 if errors_left <= 0 else stats.beta.ppf(1 - alpha, p * effective + 1, errors_left)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 12)), min_size=2, max_size=80), st.floats(0.02, 0.4))
def test_sessions_bound_agrees_with_loops(labels, alpha):
    errors, sessions = [int(error) for error, _ in labels], [session for _, session in labels]
    if len(set(sessions)) < 2:
        assert clustered_upper(errors, sessions, alpha) is None
    else:
        assert clustered_upper(errors, sessions, alpha) == pytest.approx(by_loops(errors, sessions, alpha), abs=1e-9)


@given(counts(500))
def test_wilson_agrees_with_statsmodels(count):
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(*count, 0.05, "wilson")
    assert share_interval(*count) == pytest.approx((max(0, low), min(1, high)), abs=1e-9)


def test_published_evidence():
    assert round(ln_below(3, 60, 0.1), 6) == 0.526379
    assert round(ln_above(100, 500, 0.1), 6) == 19.201085


@given(counts(60), st.floats(0.02, 0.9))
def test_evidence_is_the_mean_likelihood_ratio_over_all_lower_rates(count, rate):
    from scipy import integrate

    errors, n = count
    ratio = lambda p: (p / rate) ** errors * ((1 - p) / (1 - rate)) ** (n - errors) / rate  # noqa: E731  # a formula
    mean = integrate.quad(ratio, 0, rate, epsabs=0, epsrel=1e-11, limit=200, points=[min(errors / n, rate)])[0]
    assert ln_below(errors, n, rate) == pytest.approx(math.log(mean), abs=1e-7)


@given(st.integers(0, 30), st.floats(0.05, 0.9))
def test_evidence_is_1_on_average_at_the_rate_of_the_null(n, rate):
    from scipy import stats

    errors = np.arange(n + 1)
    mean = np.sum(stats.binom.pmf(errors, n, rate) * np.exp(ln_below(errors, np.full(n + 1, n), rate)))
    assert mean == pytest.approx(1, abs=1e-9)


def test_evidence_does_not_underflow():
    evidence = ln_below(np.array([500, 5_000, 9_999]), np.array([1_000, 10_000, 10_000]), 0.1)
    assert np.isfinite(evidence).all()
    series = [sum(math.prod((1002 + j) / (502 + j) * 0.1 for j in range(stop)) for stop in range(200))]
    assert evidence[0] == pytest.approx(math.log(0.9 / 501 * series[0]), abs=1e-9)
