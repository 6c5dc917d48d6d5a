"""Sentences that have to be true of odd scores, too: few, all alike, certain, on another scale than the options are for."""

from __future__ import annotations

import pytest

from dicast_stats import (
    Assumptions,
    Bayes,
    CliffsDelta,
    Distribution,
    Flips,
    Outliers,
    Practical,
    RefereeAlignment,
    Significance,
)


def said(found):
    (figures,) = found["criteria"].values()
    return figures["words"]


def spread(aggregated, scores):
    records = [{"row": {"id": str(place)}, "metrics": {"scores": {"a": score}}} for place, score in enumerate(scores)]
    return said(aggregated(Distribution(), records))


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ([0.4], "the one score is 0.4"),
        ([1, 1, 1], "all 3 scores are 1"),
        ([0, 1, 1, 1, 1, 1], "at least half of 6 scores are 1"),
        ([0, 0.25, 0.5, 0.75, 1], "the middle half of 5 scores lies between 0.25 and 0.75"),
        ([None, None], "no scores"),
    ],
)
def test_a_spread_says_no_more_than_there_is(aggregated, scores, words):
    assert spread(aggregated, scores) == words


def test_what_is_not_certain_is_not_called_so(results):
    low, high = [0.1, 0.12, 0.09, 0.11] * 5, [0.8, 0.82, 0.79, 0.81] * 5
    assert said(Bayes().compare(results({"a": low}), results({"a": high}))).endswith("more than 99.9%")
    assert said(Bayes().compare(results({"a": high}), results({"a": low}))).endswith("less than 0.1%")


def test_cliffs_delta_says_how_often_each_is_ahead(results):
    found = CliffsDelta().compare(results({"a": [0.4, 0.5]}), results({"a": [0.5, 0.6]}))
    assert said(found) == "the variant is ahead in 75.0% of all pairs and behind in 0.0%: large"


def test_scales_are_named_where_scores_may_be_on_another(results):
    sides = results({"a": [0.0, 1.0]}), results({"a": [1.0, 1.0]})
    assert "0 succeeded (4 or more) before, 0 do now" in said(Practical().compare(*sides))
    assert said(Flips().compare(*sides)) == (
        "of 2 subjects 0 went from failing (2 or less) to passing (3 or more), 0 from passing to failing"
    )


def test_a_subject_is_no_number_of_subjects(results):
    found = Outliers().compare(results({"a": [0.5, 0.5, 0.5]}), results({"a": [0.5, 0.9, 0.6]}))
    assert said(found) == "of 3 subjects, '1' changed most, by +0.4"
    alike = Outliers().compare(results({"a": [0.25, 0.5]}), results({"a": [0.5, 0.75]}))
    assert said(alike) == "all 2 subjects changed by +0.25"
    one = Outliers().compare(results({"a": [0.25]}), results({"a": [0.5]}))
    assert said(one) == "of 1 subject, '0' changed most, by +0.25"


def test_what_is_not_known_says_why(results):
    flat = results({"a": [0.5] * 5}), results({"a": [0.8] * 5})
    assert said(Significance().compare(*flat)).startswith("not known: the scores of each run are all alike")
    assert said(Assumptions().compare(*flat)) == "not known: the scores of a run are all alike"
    few = results({"a": [0.5]}), results({"a": [0.8, 0.9]})
    assert said(Significance().compare(*few)) == said(Assumptions().compare(*few)) == "too few scores to tell"


def test_an_assumption_that_was_not_tested_is_not_called_sound(results):
    import numpy as np

    one, other = np.random.default_rng(1).normal(size=(2, 5001)).tolist()
    words = said(Assumptions().compare(results({"a": one}), results({"a": other})))
    assert words.startswith("nothing speaks against equal variances")
    assert "not tested whether they are normal" in words


def test_a_correlation_that_is_not_defined_says_why(results):
    flat = results({"a": [0.5, 0.5]})
    found = RefereeAlignment(referee_fields=("id",)).compare(flat, flat)
    assert found["baseline"]["correlation"] is None
    assert "alike" in found["baseline"]["reasons"]["correlation"]
