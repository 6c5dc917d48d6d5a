"""Sentence on a paired comparison."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError
from dicast_stats import Paired
from dicast_stats.text.sentences import paired_sentence, pairs_needed


def words(results, first, second, **options):
    (text,) = Paired(**options).compare(results({"a": first}), results({"a": second}))["sentences"]
    return text.removeprefix("a: ")


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        ([0.1, 0.2, 0.3, 0.4], [0.2, 0.35, 0.42, 0.5], "better: +0.117, 95 % 0.080 to 0.155"),
        ([0.2, 0.35, 0.42, 0.5], [0.1, 0.2, 0.3, 0.4], "worse: -0.117, 95 % -0.155 to -0.080"),
        ([0.1, 0.2], [0.1, 0.2], "no difference: all 2 pairs agree"),
        ([0.1, 0.2], [0.2, 0.3], "all 2 pairs differ by +0.1"),
        ([0.1], [0.2], "too few pairs: 1 of the 2 needed"),
        ([None], [0.2], "too few pairs: 0 of the 2 needed"),
    ],
)
def test_it_says_which_is_better_by_how_much_and_how_sure_that_is(results, first, second, text):
    assert words(results, first, second) == text


def test_without_evidence_it_says_how_many_more_pairs_would_tell(results):
    first, second = [0.5] * 20, [0.5 + 0.2 * (-1) ** row for row in range(20)]
    text = words(results, first, second)
    assert (
        text
        == "no evidence either way; about 120 more pairs would detect a difference of 0.05 (now +0.00, 95 % -0.10 to 0.10)"
    )
    assert "; 20 pairs are enough to detect a difference of 0.2 (" in words(results, first, second, difference=0.2)


def test_an_end_that_is_nearly_0_is_shown_with_its_sign_and_digits():
    text = paired_sentence(50, 0.14, -0.0031, 0.283, 0.5, 0.05)
    assert text.endswith("(now +0.14, 95 % -0.003 to 0.28)")
    assert "-0.00 " not in paired_sentence(50, 0.14, -1e-9, 0.28, 0.5, 0.05)


@pytest.mark.parametrize("difference", [0, -1])
def test_the_least_difference_that_matters_is_more_than_0(difference):
    with pytest.raises(ConfigError, match="difference"):
        Paired(difference=difference)


def test_of_different_criteria_each_has_its_own(results):
    run = results({"a": [0.1, 0.2], "b": [0, 0]})
    other = results({"a": [0.1, 0.2], "b": [0.5, 0.5], "c": [1, 1]})
    assert Paired().compare(run, other)["words"] == "a: no difference: all 2 pairs agree. b: all 2 pairs differ by +0.5"
    assert Paired(criteria=("b",)).compare(run, other)["words"] == "b: all 2 pairs differ by +0.5"
    assert Paired().compare(results({"x": [1]}), other)["words"] == "no label is in both runs"


@pytest.mark.parametrize("deviation", [0.05, 0.1, 0.2, 0.5])
def test_so_many_pairs_have_the_power_that_is_promised(deviation):
    """By the noncentral t distribution, which Guenther's formula approximates."""
    from scipy import stats

    def power(count):
        bound, shift = stats.t.ppf(0.975, count - 1), 0.05 / deviation * count**0.5
        return stats.nct.sf(bound, count - 1, shift) + stats.nct.cdf(-bound, count - 1, shift)

    needed = pairs_needed(deviation, 0.05)
    assert power(needed) >= 0.795
    assert power(needed - 2) < 0.805


NUMBERS = st.one_of(st.none(), st.floats(-1e300, 1e300))


@given(
    st.integers(0, 10**6),
    NUMBERS,
    NUMBERS,
    NUMBERS,
    st.one_of(st.none(), st.floats(0, 1e308)),
    st.floats(1e-300, 1e300),
)
def test_there_is_a_sentence_for_whatever_is_known(pairs, mean, low, high, deviation, difference):
    low, high = sorted((low, high)) if None not in (low, high) else (low, high)
    text = paired_sentence(pairs, mean, low, high, deviation, difference)
    assert re.match("better: |worse: |no evidence either way; |no difference: |all |too few pairs|not known", text)


@pytest.mark.parametrize("width", [2e15, 1e308, float("inf")])
def test_scores_that_are_too_large_for_digits_are_said_to_be(width):
    assert paired_sentence(5, 0.0, -width, width, width, 0.05) == "not known over 5 pairs: the scores are too large"


def test_the_sentence_of_a_criterion_is_true_of_the_adjusted_p(results):
    rng = np.random.default_rng(5)
    baseline = {f"c{n:02}": list(rng.normal(0.5, 0.1, 20)) for n in range(60)}
    noise = {name: [score + rng.normal(0, 0.1) for score in scores] for name, scores in baseline.items()}
    variant = noise | {"c00": [score + rng.normal(0.5, 0.1) for score in baseline["c00"]]}
    criteria = Paired().compare(results(baseline), results(variant))["criteria"]
    assert criteria["c00"]["words"].startswith("better: +0.5")
    lucky = {name: entry for name, entry in criteria.items() if entry["p_value"] < 0.05 <= entry["adjusted_p_value"]}
    assert lucky
    for entry in lucky.values():
        assert entry["words"].startswith("no evidence either way; p adjusted for all criteria is 1 (now ")
    alone = Paired(adjustment="none").compare(results(baseline), results(variant))["criteria"]
    assert {alone[name]["words"].partition(": ")[0] for name in lucky} <= {"better", "worse"}
    for name, entry in lucky.items():
        assert entry["words"].endswith(f"(now {alone[name]['words'].partition(': ')[2]})")
    pair = results({"a": baseline["c00"]}), results({"a": variant["c00"]})
    assert Paired().compare(*pair)["criteria"]["a"]["words"] == alone["c00"]["words"]
