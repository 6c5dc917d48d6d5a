"""Preferences of a judge, against the same regressions with tables that are written out here."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit

from dicast_trust.cards.order_bias import (
    Graded,
    Pair,
    both_orders,
    family,
    order_flips,
    preferences,
    score_by_length,
    self_preference,
)
from dicast_trust.statistics.binomial import share_interval
from dicast_trust.statistics.chance_agreement import newcombe
from dicast_trust.statistics.regression import linear, logit, p_value

Z = 1.959963984540054


@pytest.mark.parametrize(
    ("model", "trainer"),
    [
        ("gpt-4o", "openai"),
        ("openai/o3-mini", "openai"),
        ("o1", "openai"),
        ("O4-mini", "openai"),
        ("a/b/claude-x", "anthropic"),
        ("gemma3:270m", "google"),
        ("meta/Llama-3", "meta"),
        ("qwq-32b", "alibaba"),
        ("codestral", "mistral"),
        ("deepseek-r1", "deepseek"),
        ("grok-4", "xai"),
        ("command-r", "cohere"),
        ("phi-4", "microsoft"),
        ("o10", None),
        ("my-gpt", None),
        ("", None),
        (None, None),
    ],
)
def test_the_family_of_a_model_is_that_of_its_name_after_the_provider(model, trainer):
    assert family(model) == trainer


def pair(first, second, gold=None, output=None, opponent=None):
    return Pair((first, second), gold, output, opponent)


def test_flips_are_pairs_with_two_winners():
    pairs = [pair("output", "output"), pair("output", "opponent"), pair("tie", "output"), pair("tie", "tie")]
    low, high = share_interval(2, 4)
    assert order_flips(pairs) == {"value": 0.5, "low": low, "high": high, "flipped": 2, "n": 4}
    assert order_flips([]) == {"value": None, "low": None, "high": None, "flipped": 0, "n": 0}


def test_right_orders_are_counted_over_labels_that_are_no_tie():
    pairs = [
        pair("output", "output", 1.0),
        pair("output", "opponent", 0.75),
        pair("output", "output", 0.25),
        pair("opponent", "opponent", 0.0),
        pair("output", "output", 0.5),
        pair("output", "output"),
    ]
    assert both_orders(pairs) == {"accuracy": 5 / 8, "agreement": 3 / 4, "n": 4}
    assert both_orders(pairs[4:]) == {"accuracy": None, "agreement": None, "n": 0}


def drawn(count, lengths=True):
    random = np.random.default_rng(5)
    pairs = []
    for number in range(count):
        gold = float(random.choice([0.0, 0.5, 1.0]))
        sizes = [int(size) for size in random.integers(20, 400, 2)] if lengths else [None, None]
        winners = tuple(
            str(random.choice(["output", "opponent", "tie"], p=[0.5, 0.4, 0.1] if gold > 0.5 else [0.3, 0.6, 0.1]))
            for _ in range(2)
        )
        pairs.append(Pair(winners, gold if number % 7 else None, *sizes))
    return pairs


def table(pairs):
    """Return the design, the outcomes and the pairs of both orders."""
    rows = []
    for number, each in enumerate(pairs):
        if each.gold is None:
            continue
        better = (each.gold > 0.5) - (each.gold < 0.5)
        size = math.log(each.output / each.opponent) if each.output else 0.0
        for winner, first, sign in zip(each.winners, ("output", "opponent"), (1, -1), strict=True):
            won = 0.5 if winner == "tie" else float(winner == first)
            rows.append((number, won, 1.0, sign * better, sign * size))
    numbers, won, *columns = zip(*rows, strict=True)
    return np.array(columns).T, np.array(won), list(numbers)


@pytest.mark.parametrize("lengths", [True, False])
def test_preferences_for_place_and_length_are_coefficients_of_one_regression(lengths):
    pairs = drawn(200, lengths)
    design, won, numbers = table(pairs)
    design = design if lengths else design[:, :2]
    fit = logit(design, won, numbers)
    figures, reasons = preferences(pairs)
    for name, place in [("position", 0), ("length", 2)][: 1 + lengths]:
        value, error = fit.coefficients[place], fit.errors[place]
        odds, column = design @ fit.coefficients, design[:, place]
        effect = np.mean(np.sign(column) * (expit(odds) - expit(odds - value * column)))
        assert figures[name] == pytest.approx(
            {
                "value": value,
                "low": value - Z * error,
                "high": value + Z * error,
                "z": value / error,
                "p_value": p_value(value / error),
                "effect": effect,
            }
        )
    missing = "the ledger does not have both texts of every pair, so their lengths are not known"
    assert reasons == ({} if lengths else {"length": missing})
    assert lengths or figures["length"] is None


def test_texts_of_one_length_and_pairs_without_labels_have_reasons():
    equal = [each._replace(output=50, opponent=50) for each in drawn(200)]
    assert preferences(equal)[1] == {"length": "all texts have one length"}
    none = "no labeled pair was judged in both orders"
    assert preferences([pair("output", "output")]) == (
        {"position": None, "length": None},
        {"position": none, "length": none},
    )
    few, reasons = preferences([pair("output", "output", 1.0)])
    assert few == {"position": None, "length": None}
    assert set(reasons) == {"position", "length"}


def test_growth_of_scores_with_length_is_the_effect_of_a_standard_deviation():
    random = np.random.default_rng(3)
    graded = [
        Graded(
            float(np.clip(0.5 * gold + 0.1 * math.log(length) + random.normal(0, 0.1), 0, 1)), gold, length, number // 2
        )
        for number, (gold, length) in enumerate(
            zip(random.integers(0, 2, 80).astype(float).tolist(), random.integers(5, 500, 80).tolist(), strict=True)
        )
    ]
    sizes = np.log([item.length for item in graded])
    design = np.array([[1.0, item.gold, size] for item, size in zip(graded, sizes, strict=True)])
    fit = linear(design, np.array([item.score for item in graded]), [item.session for item in graded])
    value, error = fit.coefficients[2], fit.errors[2]
    figures, reason = score_by_length(graded)
    assert reason is None
    assert figures == pytest.approx(
        {
            "value": value,
            "low": value - Z * error,
            "high": value + Z * error,
            "z": value / error,
            "p_value": p_value(value / error),
            "effect": value * np.std(sizes, ddof=1),
        }
    )


@pytest.mark.parametrize(
    ("graded", "reason"),
    [
        ([], "the ledger does not have the text of every labeled subject"),
        (
            [Graded(1.0, 1.0, 5, 1), Graded(0.0, 0.0, None, 2)],
            "the ledger does not have the text of every labeled subject",
        ),
        ([Graded(1.0, 1.0, 0, 1)], "the ledger does not have the text of every labeled subject"),
        (
            [Graded(1.0, 1.0, 5, 1), Graded(0.0, 0.0, 5, 2)],
            "too few labeled subjects, or all of one length or one label",
        ),
    ],
)
def test_scores_without_lengths_have_a_reason(graded, reason):
    figures, why = score_by_length(graded)
    assert figures is None
    assert reason in why


def test_a_judge_that_is_right_more_often_on_its_own_family_has_a_preference():
    rights = [("gpt-4", True)] * 30 + [("openai/o1", False)] * 10 + [("claude", True)] * 20 + [("mine", False)] * 20
    value, (low, high) = newcombe((30, 40), (20, 40))
    figures, reason = self_preference(rights, "gpt-5")
    assert reason is None
    assert figures == {
        "value": value,
        "low": low,
        "high": high,
        "own": {"n": 40, "accuracy": 0.75},
        "others": {"n": 40, "accuracy": 0.5},
        "family": "openai",
        "p_value": pytest.approx(p_value(value / ((high - low) / (2 * Z)))),
        "effect": value,
    }


@pytest.mark.parametrize(
    ("rights", "judge", "reason"),
    [
        ([], None, "the judge asks no model"),
        ([], "mine", "the judge's model is of no known family"),
        ([("claude", True)] * 9, "gpt-5", "too few labeled subjects; name its column with --author"),
        ([("gpt-4", True)] * 9, "gpt-5", "too few labeled subjects; name its column with --author"),
    ],
)
def test_a_preference_for_its_own_family_needs_both_families(rights, judge, reason):
    figures, why = self_preference(rights, judge)
    assert figures is None
    assert reason in why
