"""Sentence on a paired comparison."""

from __future__ import annotations

import numpy as np
import pytest

from dicast import ConfigError
from dicast_stats import Paired


def words(results, first, second, **options):
    (text,) = Paired(**options).compare(results({"a": first}), results({"a": second}))["sentences"]
    return text.removeprefix("a: ")


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (
            [0.1, 0.2, 0.3, 0.4],
            [0.2, 0.35, 0.42, 0.5],
            "better: B is ahead, +0.117, 95 % interval 0.080 to 0.155, over 4 pairs",
        ),
        (
            [0.2, 0.35, 0.42, 0.5],
            [0.1, 0.2, 0.3, 0.4],
            "worse: A is ahead, -0.117, 95 % interval -0.155 to -0.080, over 4 pairs",
        ),
        (
            [0.1, 0.2],
            [0.1, 0.2],
            "cannot tell: +0 over 2 pairs, all differences are 0; about 4 more pairs are needed to tell",
        ),
        ([0.1] * 6, [0.2] * 6, "better: B is ahead, +0.1 over 6 pairs, all differences equal"),
        ([0.1], [0.2], "too few pairs: 1 of the 2 needed"),
        ([None], [0.2], "too few pairs: 0 of the 2 needed"),
    ],
)
def test_it_says_which_is_better_by_how_much_and_how_sure_that_is(results, first, second, text):
    assert words(results, first, second) == text


def test_without_evidence_it_says_how_many_more_pairs_would_tell(results):
    first, second = [0.5] * 20, [0.5 + 0.2 * (-1) ** row for row in range(20)]
    assert (
        words(results, first, second)
        == "cannot tell: +0.00, 95 % interval -0.10 to 0.10, over 20 pairs; about 1,100 more pairs are needed to tell"
    )
    assert words(results, first, second, difference=0.2).startswith("no difference found: +0.00")


@pytest.mark.parametrize("difference", [0, -1])
def test_the_least_difference_that_matters_is_more_than_0(difference):
    with pytest.raises(ConfigError, match="difference"):
        Paired(difference=difference)


def test_of_different_criteria_each_has_its_own(results):
    run = results({"a": [0.1] * 7, "b": [0] * 7})
    other = results({"a": [0.1] * 7, "b": [0.5] * 7, "c": [1] * 7})
    b = "b: better: B is ahead, +0.5 over 7 pairs, all differences equal"
    assert (
        Paired().compare(run, other)["words"] == f"a: no difference found: +0 over 7 pairs, all differences are 0. {b}"
    )
    assert Paired(criteria=("b",)).compare(run, other)["words"] == b
    few = Paired().compare(results({"a": [0.1] * 6, "b": [0] * 6}), results({"a": [0.2] * 6, "b": [0.5] * 6}))
    assert "about 1 more pair is needed to tell; p adjusted by Holm is 0.0625" in few["criteria"]["b"]["words"]
    assert Paired().compare(results({"x": [1]}), other)["words"] == "no label is in both runs"


def test_scores_that_are_too_large_for_digits_are_said_to_be(results):
    big = [1e308, -1e308, 1.5e308]
    assert words(results, big, [-value for value in big]) == "cannot tell: the scores of 3 pairs are too large"


def test_the_sentence_of_a_criterion_is_true_of_the_adjusted_p(results):
    rng = np.random.default_rng(5)
    baseline = {f"c{n:02}": list(rng.normal(0.5, 0.1, 20)) for n in range(60)}
    noise = {name: [score + rng.normal(0, 0.1) for score in scores] for name, scores in baseline.items()}
    variant = noise | {"c00": [score + rng.normal(0.5, 0.1) for score in baseline["c00"]]}
    criteria = Paired().compare(results(baseline), results(variant))["criteria"]
    assert criteria["c00"]["words"].startswith("better: B is ahead, +0.5")
    lucky = {name: entry for name, entry in criteria.items() if entry["p_value"] < 0.05 <= entry["adjusted_p_value"]}
    assert lucky
    for entry in lucky.values():
        assert entry["words"].startswith("cannot tell: ")
        assert entry["words"].endswith("; p adjusted by Holm is 1.0000")
    alone = Paired(adjustment="none").compare(results(baseline), results(variant))["criteria"]
    assert {alone[name]["words"].partition(": ")[0] for name in lucky} <= {"better", "worse"}
    pair = results({"a": baseline["c00"]}), results({"a": variant["c00"]})
    assert Paired().compare(*pair)["criteria"]["a"]["words"] == alone["c00"]["words"]
