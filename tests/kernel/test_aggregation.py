"""Several numbers brought to one."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from statistics import fmean

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dicast import ConfigError, Judgment, Score
from dicast._kernel.values.aggregation import TrimmedMean, aggregate, entering, mean
from dicast.testing import FakeJudge, FakeMetric, run_pipeline, sample

TENTHS = [n / 10 for n in range(10)]


@pytest.mark.parametrize(
    ("method", "values", "expected"),
    [
        ("median", [0.1, 0.5, 0.9], 0.5),
        ("median", [0.9, 0.1, 0.5], 0.5),
        ("median", [0.1, 0.2, 0.8, 0.9], 0.5),
        ("mean", [0.1, 0.2, 0.9], 0.4),
        ("min", [0.4, 0.2, 0.9], 0.2),
        ("max", [0.4, 0.9, 0.2], 0.9),
        (TrimmedMean(10), TENTHS, 0.45),
        (TrimmedMean(10), [*TENTHS[1:], 0.9], 0.55),
        (TrimmedMean(25), [0, 0.5, 0.6, 1], 0.55),
        (TrimmedMean(25), [1, 0.6, 0.5, 0], 0.55),
        (TrimmedMean(34), [0.1, 0.2, 0.9], 0.2),
        (TrimmedMean(33), [0.1, 0.2, 0.9], 0.4),
        (TrimmedMean(50), [0.1, 0.2, 0.4, 0.9], 0.3),
        (TrimmedMean(50), [0.1, 0.2, 0.9], 0.2),
        (TrimmedMean(0), [0.1, 0.2, 0.9], 0.4),
    ],
)
def test_each_method_on_figures_worked_by_hand(method, values, expected):
    assert aggregate(values, method) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("method", ["median", "mean", "min", "max", TrimmedMean(20)])
def test_one_value_is_itself(method):
    assert aggregate([0.3], method) == 0.3


@pytest.mark.parametrize(("percent", "count", "cut"), [(0, 5, 0), (10, 9, 0), (10, 10, 1), (34, 3, 1), (50, 7, 3)])
def test_the_cut_is_the_whole_part_of_the_percent(percent, count, cut):
    assert TrimmedMean(percent).cut(count) == cut


@given(st.integers(10, 500), st.integers(1, 50), st.integers(-1, 1))
@settings(max_examples=3 * settings.default.max_examples)
def test_the_cut_is_that_of_the_percent_as_it_is_written(tenths, times, extra):
    """Also with counts next to an exact multiple."""
    percent = Fraction(tenths, 10)
    count = times * (percent / 100).denominator + extra
    assert TrimmedMean(float(percent)).cut(count) == math.floor(count * percent / 100)


def test_a_cut_that_comes_out_even_is_whole():
    assert (TrimmedMean(4.6).cut(1500), TrimmedMean(7).cut(100), TrimmedMean(1.00001).cut(10**7)) == (69, 7, 100_001)


@pytest.mark.parametrize("share", [0.2, 0.99, 1e-05])
def test_a_share_in_the_place_of_a_percent_is_refused_with_a_hint(share):
    with pytest.raises(ConfigError, match="a percentage from each end") as refused:
        TrimmedMean(share)
    assert refused.value.problems[0].hint == f"trimmed_mean: {share * 100:g}"


@pytest.mark.parametrize("percent", [-0.1, 50.1, math.nan])
def test_a_percent_outside_0_to_50_is_refused(percent):
    with pytest.raises(ValueError):
        TrimmedMean(percent)


METHODS = st.sampled_from(["median", "mean", "min", "max"]) | st.floats(1, 50).map(TrimmedMean)
VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@given(VALUES, METHODS)
def test_the_result_lies_between_the_lowest_and_the_highest(values, method):
    assert min(values) <= aggregate(values, method) <= max(values)


@given(st.lists(st.tuples(st.floats(0, 1), st.just(0.0) | st.floats(0, 1e9)), min_size=1, max_size=30))
def test_a_weighted_mean_lies_between_what_has_a_weight_and_is_the_exact_one_but_for_rounding(pairs):
    assume(any(weight for _, weight in pairs))
    values, weights = zip(*pairs, strict=True)
    result, weighty = mean(values, weights), [value for value, weight in pairs if weight]
    assert min(weighty) <= result <= max(weighty)
    if min(weight for weight in weights if weight) > 1e-9:
        exact = sum(Fraction(v) * Fraction(w) for v, w in pairs) / sum(map(Fraction, weights))
        assert result == pytest.approx(float(exact), rel=1e-15, abs=1e-300)
    assert mean(values[::-1], weights[::-1]) == result


@given(VALUES, METHODS)
def test_what_enters_says_which_values_make_the_result(values, method):
    low, high = entering(values, method)
    assert {low, high} <= set(values)
    assert low <= aggregate(values, method) <= high
    assert aggregate([low, high], "mean" if method != "median" else method) == aggregate(values, method) or low < high


@given(VALUES, METHODS, st.randoms(use_true_random=False))
def test_the_order_does_not_matter(values, method, random):
    assert aggregate(random.sample(values, len(values)), method) == aggregate(values, method)


@given(VALUES, METHODS, st.data())
def test_raising_a_value_never_lowers_the_result(values, method, data):
    n = data.draw(st.integers(0, len(values) - 1))
    raised = [*values[:n], data.draw(st.floats(values[n], 1)), *values[n + 1 :]]
    assert aggregate(raised, method) >= aggregate(values, method) - 1e-12


@given(VALUES, st.floats(1, 49))
def test_a_trimmed_mean_is_the_mean_of_the_middle(values, percent):
    cut = math.floor(len(values) * percent / 100)
    middle = sorted(values)[cut : len(values) - cut]
    assert aggregate(values, TrimmedMean(percent)) == pytest.approx(fmean(middle))


def test_a_mean_stays_in_the_unit_interval_whatever_the_rounding():
    assert mean([0.7] * 3) == mean([0.7] * 3, [0.1, 0.2, 0.3]) == 0.7
    assert mean([math.nextafter(1.0, 0)] * 7) <= 1.0


def test_a_run_of_equal_scores_has_their_mean_and_passes_a_gate_at_it():
    subjects = [sample("x", id=str(n)) for n in range(3)]
    for metrics in ({"metrics": ["m"]}, {"judges": ["j"]}):
        components = {"m": FakeMetric(Score(0.7)), "j": FakeJudge(Judgment(0.7))}
        text = json.dumps({**metrics, "gate": {"min_score": 0.7}, "scoring": {"rollouts": 3, "aggregation": "mean"}})
        done = run_pipeline(text, subjects=subjects, components=components)
        assert (done.document["score"]["mean"], done.document["score"]["aggregate"], done.exit_code) == (0.7, 0.7, 0)
        assert all(
            item["mean"] == 0.7 for item in (*done.document["metrics"].values(), *done.document["judges"].values())
        )
