"""Sentences on unusual scores: few, all equal, certain, on another scale than that of the options."""

from __future__ import annotations

import pytest

from dicast import Results
from dicast_stats import (
    Assumptions,
    Bayes,
    CliffsDelta,
    Distribution,
    Flips,
    Outliers,
    PassRate,
    Practical,
    RationaleAnalysis,
    RefereeAlignment,
    Significance,
)


def sentence_of(comparison):
    (figures,) = comparison["criteria"].values()
    return figures["words"]


def spread(aggregated, scores):
    records = [{"row": {"id": str(place)}, "metrics": {"scores": {"a": score}}} for place, score in enumerate(scores)]
    return sentence_of(aggregated(Distribution(), records))


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ([0.4], "the one score is 0.4"),
        ([1, 1, 1], "all 3 scores are 1"),
        ([0.3, 0.1 + 0.2, 0.3], "all 3 scores are 0.3"),
        ([1e17, 1e17], "all 2 scores are 1e+17"),
        ([0, 1, 1, 1, 1, 1], "at least half of 6 scores are 1"),
        ([0, 0.25, 0.5, 0.75, 1], "the middle half of 5 scores lies between 0.25 and 0.75"),
        ([None, None], "no scores"),
    ],
)
def test_a_spread_says_no_more_than_there_is(aggregated, scores, words):
    assert spread(aggregated, scores) == words


def test_what_is_not_certain_is_not_called_so(results):
    low, high = [0.1, 0.12, 0.09, 0.11] * 5, [0.8, 0.82, 0.79, 0.81] * 5
    assert sentence_of(Bayes().compare(results({"a": low}), results({"a": high}))).endswith("more than 99.9%")
    assert sentence_of(Bayes().compare(results({"a": high}), results({"a": low}))).endswith("less than 0.1%")


def test_cliffs_delta_says_how_often_each_is_ahead(results):
    comparison = CliffsDelta().compare(results({"a": [0.4, 0.5]}), results({"a": [0.5, 0.6]}))
    assert sentence_of(comparison) == "B is above A in 75.0% of combinations, below in 0.0%: large"


def test_scales_are_named_where_scores_may_be_on_another(results):
    sides = results({"a": [0.0, 1.0]}), results({"a": [1.0, 1.0]})
    assert "0 succeeded (4 or more) before, 0 do now" in sentence_of(Practical().compare(*sides))
    assert sentence_of(Flips().compare(*sides)) == (
        "of 2 subjects 0 went from failing (2 or less) to passing (3 or more), 0 from passing to failing; "
        "all scores are from 0 to 1, which is another scale: set the options pass_at, fail_at and major"
    )
    with_pass_at = [Results("run", "name", side.records, pass_at={"a": 0.7}) for side in sides]
    assert sentence_of(Flips().compare(*with_pass_at)).endswith(" and major; the run itself passes from 0.7 on")
    assert "all scores" not in sentence_of(Flips(pass_at=0.7, fail_at=0.6).compare(*sides))


def test_a_subject_is_no_number_of_subjects(results):
    comparison = Outliers().compare(results({"a": [0.5, 0.5, 0.5]}), results({"a": [0.5, 0.9, 0.6]}))
    assert sentence_of(comparison) == "of 3 subjects, '1' changed most, by +0.4"
    alike = Outliers().compare(results({"a": [0.25, 0.5]}), results({"a": [0.5, 0.75]}))
    assert sentence_of(alike) == "all 2 subjects changed by +0.25"
    single = Outliers().compare(results({"a": [0.25]}), results({"a": [0.5]}))
    assert sentence_of(single) == "of 1 subject, '0' changed most, by +0.25"


def test_what_is_not_known_says_why(results):
    flat = results({"a": [0.5] * 5}), results({"a": [0.8] * 5})
    assert sentence_of(Significance().compare(*flat)).startswith("not known: all scores of each run are equal")
    assert sentence_of(Assumptions().compare(*flat)) == "not known: all scores of a run are equal"
    few = results({"a": [0.5]}), results({"a": [0.8, 0.9]})
    assert sentence_of(Significance().compare(*few)) == sentence_of(Assumptions().compare(*few)) == "too few scores"


def test_an_assumption_that_was_not_tested_is_not_called_sound(results):
    import numpy as np

    first, second = np.random.default_rng(1).normal(size=(2, 5001)).tolist()
    words = sentence_of(Assumptions().compare(results({"a": first}), results({"a": second})))
    assert words.startswith("no evidence against equal variances")
    assert "normality is not tested" in words


def test_a_correlation_that_is_not_defined_says_why(results):
    flat = results({"a": [0.5, 0.5]})
    comparison = RefereeAlignment(referee_fields=("id",)).compare(flat, flat)
    assert comparison["baseline"]["correlation"] is None
    assert "equal" in comparison["baseline"]["reasons"]["correlation"]


def test_scores_that_are_equal_but_for_rounding_have_a_histogram_around_them(aggregated):
    records = [{"metrics": {"scores": {"a": score}}} for score in (0.3, 0.1 + 0.2)]
    (figures,) = aggregated(Distribution(), records)["criteria"].values()
    assert sum(figures["histogram"]["counts"]) == 2
    assert figures["histogram"]["edges"][0] == pytest.approx(-0.2)
    assert figures["histogram"]["edges"] == sorted(set(figures["histogram"]["edges"]))


def test_the_rate_that_is_asked_for_is_not_rounded(aggregated):
    records = [{"metrics": {"score_flags": {"a": True}}} for _ in range(2_000)]
    assert "at least 99.5% (" in sentence_of(aggregated(PassRate(at_least=0.995), records))


def test_a_variance_that_cannot_be_tested_says_why(results):
    figures = Assumptions().compare(results({"a": [0, 0, 1, 1]}), results({"a": [1, 0, 1, 0]}))["criteria"]["a"]
    assert figures["variance"]["p_value"] is None
    assert figures["variance"]["reason"] == "in each run all scores have the same distance from the median"
    normal = Assumptions(alpha=1e-9).compare(results({"a": [0, 0, 1, 1]}), results({"a": [1, 0, 1, 0]}))
    assert sentence_of(normal) == "not known: in each run all scores have the same distance from the median"


def marked(scores, marks):
    rows = list(zip(scores, marks, strict=True))
    records = [{"row": {"mark": mark}, "metrics": {"score": score}} for score, mark in rows]
    return Results("run", "name", lambda: iter([(str(row), record) for row, record in enumerate(records)]))


def test_how_near_the_referees_large_scores_are_is_said_too():
    before, after = marked([1e200, 3e200, 5e200], [0, 0, 0]), marked([1e199, 2e200, 1e200], [0, 0, 0])
    comparison = RefereeAlignment(referee_fields=("mark",)).compare(before, after)
    assert comparison["baseline"]["rmse"] == pytest.approx((35 / 3) ** 0.5 * 1e200)
    assert comparison["words"] == "cannot tell: the distance to the referees changed by -1.967e+200 over 3 subjects"
    beyond = marked([1.7e308, -1.7e308], [-1.7e308, 1.7e308])
    comparison = RefereeAlignment(referee_fields=("mark",)).compare(beyond, marked([1, 2], [1, 2]))
    assert comparison["words"] == "not known over 2 subjects: the scores are too large"


def test_errors_that_all_change_alike_are_no_lack_of_evidence():
    before, after = marked([1, 2, 3], [3, 4, 5]), marked([2, 3, 4], [3, 4, 5])
    words = RefereeAlignment(referee_fields=("mark",)).compare(before, after)["words"]
    assert words == "the distances to the referees of all 3 subjects changed by -1"
    assert (
        RefereeAlignment(referee_fields=("mark",)).compare(after, after)["words"]
        == "no distance to the referees changed"
    )


def test_a_change_beyond_what_a_number_holds_is_null_and_said_to_be(results):
    comparison = Outliers().compare(results({"a": [-1.7e308, 1.7e308]}), results({"a": [1.7e308, -1.7e308]}))
    assert sentence_of(comparison) == "not known over 2 subjects: the scores are too large"
    assert comparison["criteria"]["a"]["outliers"][0]["difference"] is None


def test_one_rationale_is_one(aggregated):
    records = [{"metrics": {"rationale": "It is short.", "score": 3}}]
    assert sentence_of(aggregated(RationaleAnalysis(), records)) == "1 rationale"


def test_a_large_difference_that_is_well_known_is_said_in_few_digits(results):
    before, after = [1e17, 1e17 + 1e6] * 2, [3e17, 3e17 + 1e6] * 2
    words = sentence_of(Significance().compare(results({"a": before}), results({"a": after})))
    assert words.startswith("better: +2e+17, 95 % interval 2e+17 to 2e+17, p ")


def test_a_long_id_is_cut_in_a_sentence(results):
    ids = ["x" * 100_000, "y"]
    comparison = Outliers().compare(results({"a": [0.0, 0.5]}, ids=ids), results({"a": [1.0, 0.5]}, ids=ids))
    assert sentence_of(comparison) == f"of 2 subjects, '{'x' * 30}…{'x' * 29}' changed most, by +1"
    assert comparison["criteria"]["a"]["outliers"][0]["subject_id"] == ids[0]
