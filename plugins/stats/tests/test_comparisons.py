"""Comparisons of two runs: the specified cases, and runs with little to compare."""

from __future__ import annotations

import json
from itertools import product
from math import inf, ldexp, nan

import attrs
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dicast import ConfigError, Results
from dicast_stats import CliffsDelta, Paired, ScoreDelta, Significance

ALL = (ScoreDelta(), CliffsDelta(), Significance(), Paired())
TOO_LARGE = "the scores are too large"
TESTS = (
    "ci_low",
    "ci_high",
    "t",
    "p_value",
    "effect_size",
    "wilcoxon_p",
    "sign_p",
    "bootstrap_ci_low",
    "bootstrap_ci_high",
)


def only(comparison):
    (figures,) = comparison["criteria"].values()
    return figures


def test_score_delta_has_the_settled_figure(results):
    comparison = ScoreDelta().compare(results({"a": [0.5, 0.5]}), results({"a": [0.8, 0.8]}))
    assert only(comparison) == pytest.approx(0.3)


def test_score_delta_is_of_any_figure(results):
    baseline = results({"a": [1, 2, None]}, {"a": [True, False, None]})
    variant = results({"a": [1, 5, 9]}, {"a": [True, True, True]})
    for metric, delta in (("median", 3.5), ("min", 0), ("max", 7), ("pass_rate", 1 - 1 / 3)):
        assert only(ScoreDelta(metric=metric).compare(baseline, variant)) == pytest.approx(delta)
    with pytest.raises(ConfigError, match="did you mean 'median'"):
        ScoreDelta(metric="medium")


def test_cliffs_delta_has_the_settled_figures(results):
    first, second = results({"a": [1, 2, 3]}), results({"a": [4, 5, 6]})
    figures = only(CliffsDelta().compare(first, second))
    words = figures.pop("words")
    assert figures == {"delta": 1.0, "interpretation": "large", "n_baseline": 3, "n_variant": 3}
    assert words == "B is above A in 100.0% of combinations, below in 0.0%: large"
    assert only(CliffsDelta().compare(second, first))["words"].startswith(
        "B is above A in 0.0% of combinations, below in 100.0%"
    )
    itself = only(CliffsDelta().compare(first, first))
    assert (itself["delta"], itself["interpretation"]) == (0.0, "negligible")
    assert itself["words"] == "B is above A as often as below"


@pytest.mark.parametrize(
    ("higher", "name"),
    [(146, "negligible"), (147, "small"), (329, "small"), (330, "medium"), (473, "medium"), (474, "large")],
)
def test_effects_are_called_by_their_size(results, higher, name):
    comparison = CliffsDelta().compare(results({"a": [0] * 1000}), results({"a": [1] * higher + [0] * (1000 - higher)}))
    assert (only(comparison)["delta"], only(comparison)["interpretation"]) == (higher / 1000, name)


def test_significance_has_the_settled_figures(results):
    for equal_var in (False, True):
        component = Significance(equal_var=equal_var)
        figures = only(component.compare(results({"a": [0.4, 0.5, 0.6]}), results({"a": [0.7, 0.8, 0.9]})))
        expected = {"mean_difference": 0.3, "t": 3.674235, "df": 4, "effect_size": 3.0, "adjusted_p_value": 0.0213116}
        assert {name: figures[name] for name in expected} == pytest.approx(expected, abs=5e-7)
        assert figures["p_value"] == figures["adjusted_p_value"] == pytest.approx(0.0213116, abs=5e-8)
        assert (figures["n_baseline"], figures["n_variant"]) == (3, 3)
        # .3 -+ 2.776445 (t of .975 with 4 degrees of freedom) · .3/3.674235
        assert (figures["ci_low"], figures["ci_high"]) == pytest.approx((0.073304, 0.526696), abs=5e-7)


def test_equal_variance_pools_the_denominator(results):
    sides = results({"a": [1, 2, 9, 4]}), results({"a": [5, 6]})
    welch, pooled = (only(Significance(equal_var=flag).compare(*sides)) for flag in (False, True))
    assert (pooled["df"], pooled["t"]) != (welch["df"], welch["t"])
    assert pooled["t"] == pytest.approx(1.5 / ((38.5 / 4) * (1 / 4 + 1 / 2)) ** 0.5)


def test_p_values_are_adjusted_over_the_criteria_that_were_tested(results):
    baseline = results({"a": [1, 2, 3], "b": [1, 2, 3], "c": [1, 1, 1]})
    variant = results({"a": [4, 5, 7], "b": [1, 3, 3], "c": [1, 1, 1]})
    criteria = Significance(adjustment="bonferroni").compare(baseline, variant)["criteria"]
    for name in "ab":
        assert criteria[name]["adjusted_p_value"] == pytest.approx(min(1, 2 * criteria[name]["p_value"]))
    assert (criteria["c"]["p_value"], criteria["c"]["adjusted_p_value"]) == (None, None)
    wide = Significance(adjustment="bonferroni", family_size=5).compare(baseline, variant)["criteria"]
    assert wide["a"]["adjusted_p_value"] == pytest.approx(min(1, 5 * criteria["a"]["p_value"]))
    with pytest.raises(ConfigError, match="did you mean 'bonferroni'"):
        Significance(adjustment="bonferoni")


def test_scores_all_alike_have_no_p_value_and_a_reason(results):
    flat = {"a": [0.1, 0.1, 0.1]}, {"a": [0.4, 0.4, 0.4]}
    figures = only(Significance().compare(*map(results, flat)))
    assert (figures["t"], figures["p_value"], figures["effect_size"]) == (None, None, None)
    assert figures["mean_difference"] == pytest.approx(0.3)
    assert "equal" in figures["reasons"]["t"]
    paired = only(Paired().compare(results({"a": [0.1, 0.2, 0.4]}), results({"a": [0.4, 0.5, 0.7]})))
    assert (paired["t"], paired["p_value"], paired["ci_low"], paired["bootstrap_ci_low"]) == (None, None, None, None)
    assert (paired["sign_p"], paired["n_pairs"]) == (0.25, 3)
    assert "equal" in paired["reasons"]["t"]


@pytest.mark.parametrize("times", [1, 20])
def test_a_run_against_itself_shows_no_difference(results, times):
    run = results({"a": [0.1, 0.5, 0.9] * times}, {"a": [False, True, True] * times})
    figures = only(Paired().compare(run, run))
    assert (figures["mean_difference"], figures["sign_p"], figures["wilcoxon_p"], figures["mcnemar_p"]) == (0, 1, 1, 1)
    assert (figures["passes_gained"], figures["passes_lost"], figures["pass_rate_difference"]) == (0, 0, 0)


def test_scores_from_3_4_3_to_4_5_5_have_the_settled_figures(results):
    """A success is 4 or more, so successes grow from a third to all subjects: one more for every 1.5 subjects."""
    before, after = {"a": [3, 4, 3]}, {"a": [4, 5, 5]}
    flags = ({"a": [score >= 4 for score in side["a"]]} for side in (before, after))
    figures = only(
        Paired().compare(*(results(side, passed) for side, passed in zip((before, after), flags, strict=True)))
    )
    assert figures["mean_difference"] == pytest.approx(1.333333, abs=5e-7)
    assert (figures["passes_gained"], figures["passes_lost"], figures["n_pass_pairs"]) == (2, 0, 3)
    assert 1 / figures["pass_rate_difference"] == pytest.approx(1.5)


def test_criteria_come_in_alphabetical_order(results):
    run = results({"tone": [1, 2], "analysis": [1, 2], "Depth": [1, 2]})
    for component in ALL:
        assert list(component.compare(run, run)["criteria"]) == ["Depth", "analysis", "tone"]


FIELDS = {
    CliffsDelta: {"delta", "interpretation", "n_baseline", "n_variant"},
    Significance: {"n_baseline", "n_variant", "mean_difference", "t", "df", "p_value", "adjusted_p_value", "effect_size",
                   "ci_low", "ci_high"},
    Paired: {"n_pairs", "mean_difference", "ci_low", "ci_high", "t", "p_value", "wilcoxon_p", "sign_p", "bootstrap_ci_low",
             "bootstrap_ci_high", "effect_size", "mcnemar_p"},
}  # fmt: skip


@pytest.mark.parametrize("scores", [[0.1, 0.5, 0.9], [0.5, 0.5, 0.5], [None, None, None]])
@pytest.mark.parametrize("component", FIELDS)
def test_a_comparison_has_all_its_fields_whatever_the_scores(results, component, scores):
    figures = only(component().compare(results({"a": scores}), results({"a": [0.3, 0.4, 0.8]})))
    assert figures.keys() >= FIELDS[component]
    assert ("reasons" in figures) is (None in figures.values())


def test_every_p_value_comes_with_an_effect_size_a_count_and_an_interval(results):
    first, second = results({"a": [0.1, 0.5, 0.9, 0.4]}), results({"a": [0.3, 0.4, 0.8, 0.9]})
    for component, counts in ((Significance(), ("n_baseline", "n_variant")), (Paired(), ("n_pairs",))):
        figures = only(component.compare(first, second))
        assert all(figures[name] is not None for name in ("p_value", "effect_size", "ci_low", "ci_high", *counts))


def test_subjects_are_paired_by_their_ids(results):
    baseline = results({"a": [0.1, 0.2, 0.3, 0.9]}, ids=["x", "y", "z", "gone"])
    variant = results({"a": [0.9, 0.5, 0.3, None]}, ids=["new", "z", "x", "y"])
    figures = only(Paired().compare(baseline, variant))
    assert figures["n_pairs"] == 2
    assert figures["mean_difference"] == pytest.approx(0.2)


def test_of_a_subject_judged_again_the_newest_record_counts(results):
    records = [("1", {"a": 0.0, "b": 1}), ("2", {"a": 0.5}), ("1", {"a": 0.25})]
    rows = [(subject, {"metrics": {"scores": scores}}) for subject, scores in records]
    again = Results("run", "name", lambda: iter(rows))
    comparison = Significance().compare(results({"a": [0.25, 0.5]}), again)
    assert comparison["criteria"]["a"]["n_variant"] == 2
    assert comparison["criteria"]["a"]["mean_difference"] == 0
    assert ScoreDelta().compare(again, results({"b": [1, 1]}))["criteria"] == {"b": None}


def test_criteria_of_one_run_alone_are_named(results):
    baseline, variant = results({"a": [1, 2], "old": [1, 2]}), results({"a": [2, 2], "new": [1, 2]})
    for component in ALL:
        comparison = component.compare(baseline, variant)
        assert (list(comparison["criteria"]), comparison["only_in_baseline"], comparison["only_in_variant"]) == (
            ["a"],
            ["old"],
            ["new"],
        )
    other = ScoreDelta(criteria=["new"]).compare(baseline, variant)
    assert other == {"criteria": {}, "only_in_variant": ["new"]}
    for component in ALL:
        comparison = attrs.evolve(component, criteria=("a", "nwe")).compare(baseline, variant)
        assert (list(comparison["criteria"]), comparison["in_neither"]) == (["a"], ["nwe"])


def test_runs_that_share_no_subject_have_no_pairs(results):
    figures = only(Paired().compare(results({"a": [1, 2]}, ids=["1", "2"]), results({"a": [1, 2]}, ids=["3", "4"])))
    assert (figures["n_pairs"], figures["mean_difference"]) == (0, None)
    assert figures["reasons"]["n_pairs"] == "0 of the 2 needed"


@pytest.mark.parametrize("scores", [[1, 2], [1, None], [None, nan]])
def test_fewer_samples_than_needed_give_nulls_and_a_reason(results, scores):
    run = results({"a": scores}, {"a": [True, False]})
    figures = only(Paired(min_samples=3).compare(run, run))
    assert [figures[name] for name in TESTS] == [None] * len(TESTS)
    assert "of the 3 needed" in figures["reasons"]["n_pairs"]
    assert (figures["n_pass_pairs"], figures["mcnemar_p"]) == (2, None)
    unpaired = only(Significance(min_samples=3).compare(run, run))
    assert unpaired["p_value"] is None
    assert set(unpaired["reasons"]) == {"n_baseline", "n_variant"}
    with pytest.raises(ConfigError, match="min_samples, .*got 1"):
        Paired(min_samples=1)


def test_passes_are_compared_where_both_have_a_flag(results):
    scores = {"a": [1, 2, 3, 4]}
    baseline = results(scores, {"a": [False, False, True, None]})
    variant = results(scores, {"a": [True, True, True, True]})
    figures = only(Paired().compare(baseline, variant))
    assert (figures["n_pass_pairs"], figures["passes_gained"], figures["passes_lost"]) == (3, 2, 0)
    assert (figures["mcnemar_p"], figures["pass_rate_difference"]) == (0.5, pytest.approx(2 / 3))
    without = only(Paired().compare(baseline, results(scores)))
    assert (without["mcnemar_p"], without["n_pass_pairs"]) == (None, 0)
    assert "threshold" in without["reasons"]["mcnemar_p"]


@pytest.mark.parametrize(
    ("both", "gained", "lost", "failed", "low", "high"),
    [
        (1, 1, 7, 12, -0.507, -0.026),  # Fagerland, Lydersen and Laake, Statistics in Medicine 33, 2014: Bentur's data
        (0, 0, 0, 9, -0.299, 0.299),  # Wilson's interval of 0 of 9 has the upper limit .299
        (9, 0, 0, 0, -0.299, 0.299),
        (1, 0, 0, 1, -0.573, 0.573),  # a covariance of 1 is below its correction, and so counts as 0
    ],
)
def test_the_difference_of_pass_rates_has_newcombes_interval(results, both, gained, lost, failed, low, high):
    was = [True] * both + [False] * gained + [True] * lost + [False] * failed
    now = [True] * (both + gained) + [False] * (lost + failed)
    scores = {"a": list(range(len(was)))}
    figures = only(Paired().compare(results(scores, {"a": was}), results(scores, {"a": now})))
    assert (figures["pass_rate_ci_low"], figures["pass_rate_ci_high"]) == (
        pytest.approx(low, abs=5e-4),
        pytest.approx(high, abs=5e-4),
    )
    swapped = only(Paired().compare(results(scores, {"a": now}), results(scores, {"a": was})))
    assert swapped["pass_rate_ci_low"] == pytest.approx(-figures["pass_rate_ci_high"])


def test_too_few_flags_have_no_interval_and_a_reason(results):
    run = results({"a": [1, 2]}, {"a": [True, None]})
    figures = only(Paired().compare(run, run))
    assert (figures["pass_rate_ci_low"], figures["pass_rate_ci_high"]) == (None, None)
    assert figures["reasons"]["n_pass_pairs"] == "1 of the 2 needed"


@pytest.mark.parametrize("text", ["٣", "1_000", "nan", "inf", "0x10", "1 2", ""])
def test_a_text_that_only_python_reads_as_a_number_is_missing(results, text):
    comparison = Significance().compare(results({"a": [text, 1.0, 2.0]}), results({"a": ["1", " 2.0 ", "-.5e1"]}))[
        "criteria"
    ]
    assert (comparison["a"]["n_baseline"], comparison["a"]["n_variant"]) == (2, 3)


def test_a_family_of_tests_has_one_at_least():
    with pytest.raises(ConfigError, match="family_size, .*got 0"):
        Significance(family_size=0)


def test_empty_runs_compare_to_nothing(results):
    for component in ALL:
        assert component.compare(results({}), results({}))["criteria"] == {}


def test_the_bootstrap_is_the_same_again_in_any_order_and_mirrored(results):
    before, after = [0.1, 0.4, 0.2, 0.9, 0.3], [0.5, 0.3, 0.9, 0.9, 0.8]
    names = "bootstrap_ci_low", "bootstrap_ci_high"
    first = only(Paired().compare(results({"a": before}), results({"a": after})))
    again = only(Paired().compare(results({"a": before[::-1]}), results({"a": after[::-1]})))
    swapped = only(Paired().compare(results({"a": after}), results({"a": before})))
    assert [again[name] for name in names] == [first[name] for name in names]
    assert [-swapped[name] for name in reversed(names)] == [first[name] for name in names]
    assert first["bootstrap_method"] == "BCa over pairs, 9,999 resamples, seed 0"


def test_many_pairs_are_resampled_in_groups(results):
    before, after = [0.0] * 5001, [float(row % 7) for row in range(5001)]
    figures = only(Paired().compare(results({"a": before}), results({"a": after})))
    assert "in 1,000 random groups" in figures["bootstrap_method"]
    assert figures["bootstrap_ci_low"] == pytest.approx(figures["ci_low"], abs=0.01)
    assert figures["bootstrap_ci_high"] == pytest.approx(figures["ci_high"], abs=0.01)


def test_an_interval_as_wide_as_numbers_go_is_compared_and_not_written_out(results):
    figures = only(Significance().compare(results({"a": [0.0] * 3}), results({"a": [5e307, -5e307, 0.0]})))
    assert figures["ci_high"] - figures["ci_low"] == inf
    assert figures["words"] == "cannot tell: p 1.0000"


scores = st.none() | st.booleans() | st.floats() | st.sampled_from([0.0, 0.5, 1.0, "0.7", "85%", "nan"])
flags = st.none() | st.booleans()
sides = st.lists(st.tuples(scores, flags), max_size=8)


@given(sides, sides)
def test_whatever_is_compared_the_document_is_json_without_nan(results, first, second):
    baseline, variant = (
        results({"a": [score for score, _ in side]}, {"a": [flag for _, flag in side]}) for side in (first, second)
    )
    for component in ALL:
        comparison = component.compare(baseline, variant)
        json.dumps(comparison, allow_nan=False)
        for figures in comparison["criteria"].values():
            if isinstance(figures, dict) and None in figures.values():
                assert figures["reasons"]


integer_pairs = st.lists(st.tuples(st.integers(-1000, 1000), st.integers(-1000, 1000)), min_size=3, max_size=12)
LENGTHS = {"mean_difference", "ci_low", "ci_high", "bootstrap_ci_low", "bootstrap_ci_high"}


def scaled(value, power):
    """Return *value* times two to the power *power*, None if the product is no number."""
    try:
        return ldexp(value, power)
    except OverflowError:
        return None


@pytest.mark.slow
@settings(deadline=None, max_examples=25, phases=[Phase.explicit, Phase.generate])  # shrinking would take minutes
@given(integer_pairs, st.integers(-1074, 1013))
def test_the_size_of_scores_changes_no_test(results, pairs, power):
    def measured(component, power):
        sides = (results({"a": [ldexp(pair[side], power) for pair in pairs]}) for side in (0, 1))
        return only(component.compare(*sides))

    for component in (Significance(), Significance(equal_var=True), Paired(), CliffsDelta()):
        figures, ordinary = measured(component, power), measured(component, 0)
        for name, figure in ordinary.items():
            if name in LENGTHS and figure is not None:
                expected = scaled(figure, power)
                assert figures[name] == (None if expected is None else pytest.approx(expected, rel=1e-9, abs=1e-323)), (
                    name
                )
                assert expected is not None or TOO_LARGE in figures["reasons"].values()
            elif name not in ("reasons", "words"):  # words are about a difference of 0.05
                assert figures[name] == (pytest.approx(figure, rel=1e-9) if isinstance(figure, float) else figure), name
    for metric in ("mean", "median", "min", "max", "std"):
        expected = scaled(measured(ScoreDelta(metric=metric), 0), power)
        figures = measured(ScoreDelta(metric=metric), power)
        assert figures == (None if expected is None else pytest.approx(expected, rel=1e-9, abs=1e-323)), metric


def test_differences_that_are_too_large_are_not_said_to_be_all_alike(results):
    first, second = results({"a": [1e308, -1e308, 1e308]}), results({"a": [-1e308, 1e308, 1e308]})
    figures = only(Paired().compare(first, second))
    assert (figures["t"], figures["mean_difference"], figures["n_pairs"]) == (0.0, 0.0, 3)
    assert (figures["ci_low"], figures["ci_high"]) == (None, None)
    assert figures["reasons"]["ci_low"] == TOO_LARGE
    assert "t" not in figures["reasons"]
    delta = ScoreDelta(metric="min").compare(results({"a": [-1.7e308]}), results({"a": [1.7e308]}))
    assert (delta["criteria"], delta["reasons"]) == ({"a": None}, {"a": TOO_LARGE})


def test_scores_that_differ_too_much_in_size_have_no_test(results):
    figures = only(Significance().compare(results({"a": [1e-200, 2e-200]}), results({"a": [1e200, 1e200]})))
    assert (figures["t"], figures["p_value"], figures["effect_size"], figures["mean_difference"]) == (
        None,
        None,
        None,
        1e200,
    )
    assert figures["reasons"] == {"t": "the scores differ too much in size"}


numbers = st.lists(st.tuples(st.floats(-10, 10), st.floats(-10, 10)), min_size=2, max_size=25)


@given(numbers, st.randoms())
def test_swapping_the_runs_negates_and_order_changes_nothing(results, pairs, random):
    before, after = ([pair[side] for pair in pairs] for side in (0, 1))
    mixed = random.sample(range(len(pairs)), len(pairs))
    signed = ("mean_difference", "t", "effect_size", "delta")
    unchanged = ("p_value", "df", "sign_p", "wilcoxon_p", "n_pairs")
    for component in (CliffsDelta(), Significance()):
        figures = only(component.compare(results({"a": before}), results({"a": after})))
        swapped = only(component.compare(results({"a": after}), results({"a": before})))
        other = only(
            component.compare(
                results({"a": [before[row] for row in mixed]}), results({"a": [after[row] for row in reversed(mixed)]})
            )
        )
        for name in (*signed, *unchanged):
            if figures.get(name) is None:
                assert (swapped.get(name), other.get(name)) == (None, None)
            else:
                sign = -1 if name in signed else 1
                assert sign * swapped[name] == pytest.approx(figures[name], abs=1e-9, rel=1e-6)
                assert other[name] == pytest.approx(figures[name], abs=1e-9, rel=1e-6)


@given(numbers)
def test_cliffs_delta_stays_within_its_bounds(results, pairs):
    before, after = ([pair[side] for pair in pairs] for side in (0, 1))
    delta = only(CliffsDelta().compare(results({"a": before}), results({"a": after})))["delta"]
    assert -1 <= delta <= 1
    if min(after) > max(before):
        assert delta == 1


# Ties, but for rounding


def pair(results, before, after):
    return results({"a": before}), results({"a": after})


RANKED = ("sign_p", "wilcoxon_p", "n_pairs")
TESTED = ("p_value", "effect_size", "t")


def same_as(figures, other, names):
    for name in names:
        assert (figures[name] is None) is (other[name] is None), name
        assert other[name] is None or figures[name] == pytest.approx(other[name], rel=1e-6, abs=1e-9), name


def moved(values, change):
    return [change(value / 10) for value in values]


def test_equal_differences_rank_equal_on_every_scale(results):
    """Binary floats make .3 - .2 and .2 - .1 differ."""
    before, after = (1, 6, 0, 7, 2, 5, 8, 5), (3, 9, -2, 10, 5, 7, 11, 7)
    results_by_scale = [
        only(Paired().compare(*pair(results, moved(before, change), moved(after, change))))
        for change in (lambda x: x, lambda x: x * 10, lambda x: x / 3, lambda x: x + 1000)
    ]
    assert {round(entry["wilcoxon_p"], 12) for entry in results_by_scale} == {
        wilcoxon_p([now - was for now, was in zip(after, before, strict=True)])
    }


def wilcoxon_p(differences):
    """Return the exact p over all signs of the ranks; equal differences share their ranks."""
    sizes = sorted(map(abs, differences))
    ranks = [
        (sizes.index(abs(difference)) + 1 + len(sizes) - sizes[::-1].index(abs(difference))) / 2
        for difference in differences
    ]
    middle = sum(ranks) / 2
    distance = abs(sum(rank for rank, difference in zip(ranks, differences, strict=True) if difference > 0) - middle)
    ways = [abs(sum(chosen) - middle) >= distance for chosen in product(*((0, rank) for rank in ranks))]
    return round(sum(ways) / len(ways), 12)


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(-10, 10), st.integers(-10, 10)), min_size=2, max_size=15),
    st.sampled_from([10.0**k for k in range(-9, 10)] + [3.0, 0.7, 1 / 3]),
    st.sampled_from([0.0, 0.3, 1000.1]),
)
@settings(max_examples=15)
def test_neither_scale_nor_shift_changes_what_a_test_says(results, pairs, factor, shift):
    before, after = ([scores[side] / 10 for scores in pairs] for side in (0, 1))
    integers = pair(results, *([scores[side] for scores in pairs] for side in (0, 1)))
    for change in (lambda x: x * factor, lambda x: x + shift):
        other = pair(results, [change(x) for x in before], [change(x) for x in after])
        figures, expected = (only(Paired().compare(*sides)) for sides in (other, integers))
        same_as(figures, expected, (*RANKED, *TESTED))
        figures, expected = (only(CliffsDelta().compare(*sides)) for sides in (other, integers))
        assert figures == expected
        figures, expected = (only(Significance().compare(*sides)) for sides in (other, integers))
        same_as(figures, expected, ("t", "p_value", "effect_size", "df"))


@pytest.mark.slow
@given(st.lists(st.integers(-3, 3), min_size=4, max_size=12), st.sampled_from([0.1, 0.7, 1 / 3, 10.0]))
@settings(max_examples=6)
def test_the_bootstrap_interval_follows_the_scale(results, differences, factor):
    figures, scaled = (
        only(
            Paired().compare(
                *pair(results, [0.0] * len(differences), [size * difference for difference in differences])
            )
        )
        for size in (1.0, factor)
    )
    for name in ("bootstrap_ci_low", "bootstrap_ci_high"):
        assert (figures[name] is None) is (scaled[name] is None)
        assert figures[name] is None or scaled[name] == pytest.approx(factor * figures[name], rel=1e-9, abs=1e-9)


def test_scores_that_differ_by_rounding_alone_are_tied(results):
    sides = pair(results, [0.3, 0.7, 0.6], [0.1 + 0.2, 0.8 - 0.1, 0.2 * 3])
    assert only(CliffsDelta().compare(*sides))["delta"] == 0
    figures = only(Paired().compare(*sides))
    assert (figures["mean_difference"], figures["sign_p"], figures["wilcoxon_p"]) == (0, 1, 1)


def test_significance_says_in_words_what_its_interval_and_adjusted_p_say(results):
    low, high = [0.1, 0.12, 0.09, 0.11, 0.1], [0.3, 0.32, 0.29, 0.31, 0.3]
    rose = only(Significance().compare(results({"a": low}), results({"a": high})))
    assert rose["words"].startswith("better: +0.200, 95 % interval 0.183 to 0.217, p ")
    fell = only(Significance().compare(results({"a": high}), results({"a": low})))
    assert fell["words"].startswith("worse: -0.200, 95 % interval -0.217 to -0.183, p ")
    run = results({"a": [0.1, 0.2, 0.3]})
    few = only(Significance(adjustment="bonferroni", family_size=1000).compare(run, results({"a": [0.4, 0.5, 0.6]})))
    assert few["p_value"] < 0.05 <= few["adjusted_p_value"]
    assert few["words"].startswith("cannot tell: +0.3")
    alone = only(Significance().compare(results({"a": [0.1]}), run))
    assert alone["words"] == "too few scores"


def test_scores_without_a_label_have_a_sentence():
    def run(scores):
        rows = [(str(n), {"row": {"id": str(n)}, "metrics": {"score": score}}) for n, score in enumerate(scores)]
        return Results("run", "name", lambda: iter(rows))

    document = Paired().compare(run([0.1, 0.2, 0.3, 0.4]), run([0.5, 0.7, 0.7, 0.9]))
    (sentence,) = document["sentences"]
    assert sentence.startswith("score: better: B is ahead, +0.45, 95 % interval 0.36")
    assert document["words"] == sentence
    few = Paired().compare(run([0.1]), run([0.5]))
    assert few["sentences"] == ["score: too few pairs: 1 of the 2 needed"]
