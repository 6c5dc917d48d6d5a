"""Sentences on figures at the limit between two answers."""

from __future__ import annotations

import pytest

from dicast_stats.pairs.corrected import MIN_LABELED_PAIRS, correction_text
from dicast_stats.text.sentences import chance_text, count_subjects, interval_text, unknown_text


@pytest.mark.parametrize(
    ("chance", "text"),
    [(0.9995, "more than 99.9%"), (0.99949, "99.9%"), (0.0005, "0.1%"), (0.00049, "less than 0.1%"), (0.5, "50.0%")],
)
def test_a_chance_is_never_0_or_100_percent(chance, text):
    assert chance_text(chance) == text


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((0.5, 0.5, 0.5), "+0.50, 95 % interval 0.50 to 0.50"),
        ((0.0, -1e15, 1e15), "+0.00, 95 % interval -1e+15 to 1e+15"),
        ((0.001, 0.0005, 0.0015), "+0.0010, 95 % interval 0.0005 to 0.0015"),
        ((0.0001, 0.0, 10.0), "+0.0001, 95 % interval 0.00 to 10.00"),
        ((1e-9, 0.0, 1e-8), "+0.000000001, 95 % interval 0.000000 to 0.00000001"),
        ((20.0, 5.0, 35.0), "+20.00, 95 % interval 5.00 to 35.00"),
        ((0.0185, -0.01, 0.05), "+0.018, 95 % interval -0.010 to 0.050"),
        ((0.018500000000000003, -0.01, 0.05), "+0.018, 95 % interval -0.010 to 0.050"),
    ],
)
def test_an_interval_has_the_digits_that_its_width_needs(ends, text):
    assert interval_text(*ends) == text


def test_counts_and_unknown_figures_have_words():
    assert (count_subjects(1), count_subjects(2), count_subjects(1200)) == ("1 subject", "2 subjects", "1,200 subjects")
    assert unknown_text({"reasons": {"t": "why", "n_baseline": "1 of 2"}}) == "too few scores"
    assert unknown_text({"reasons": {"t": "why"}}) == "not known: why"
    assert unknown_text({}) == "not known: it is not defined"


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        ((None, None, None), f"not corrected: 1,200 labeled pairs of the {MIN_LABELED_PAIRS} needed"),
        ((0.1, None, None), "by 1,200 labeled pairs +0.1000, without an interval"),
        ((0.1, 0.01, 0.19), "by 1,200 labeled pairs better: +0.1000, 95 % interval 0.0100 to 0.1900"),
        ((0.1, 0.0, 0.2), "by 1,200 labeled pairs cannot tell: +0.1000, 95 % interval 0.0000 to 0.2000"),
        ((-0.1, -0.2, 0.0), "by 1,200 labeled pairs cannot tell: -0.1000, 95 % interval -0.2000 to 0.0000"),
        ((-0.1, -0.2, -0.01), "by 1,200 labeled pairs worse: -0.1000, 95 % interval -0.2000 to -0.0100"),
    ],
)
def test_a_corrected_difference_has_a_sentence(figures, text):
    names = ("mean", "ci_low", "ci_high")
    assert correction_text({"n_labelled": 1200, **dict(zip(names, figures, strict=True))}) == text


def test_ends_whose_distance_is_no_number_have_a_sentence():
    assert interval_text(0.0, -1.5e308, 1.5e308) == "+0.00, 95 % interval -1.5e+308 to 1.5e+308"
