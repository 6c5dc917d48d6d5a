"""Sentences on figures at the limit between two answers."""

from __future__ import annotations

import pytest

from dicast_stats.pairs.corrected import MIN_LABELED_PAIRS, correction_text
from dicast_stats.text.sentences import (
    adjusted_paired_sentence,
    chance_text,
    count_subjects,
    interval_text,
    paired_sentence,
    pairs_needed,
    unknown_text,
)

NEEDED = pairs_needed(0.5, 0.1)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((1, None, None, None, None, 0.1), "too few pairs: 1 of the 2 needed"),
        ((1999, 0.1, 0.05, 0.15, 0.5, 0.1, 2000), "too few pairs: 1,999 of the 2,000 needed"),
        ((2, None, None, None, 0.5, 0.1), "not known over 2 pairs: the scores are too large"),
        ((2, 0.0, None, None, 0, 0.1), "no difference: all 2 pairs agree"),
        ((1200, 0.25, None, None, 0, 0.1), "all 1,200 pairs differ by +0.25"),
        ((2, None, None, None, 0, 0.1), "not known over 2 pairs: the scores are too large"),
        ((9, 0.0, -5e14, 5e14, 0.5, 0.1), "not known over 9 pairs: the scores are too large"),
        ((9, 0.1, 0.01, 0.19, 0.5, 0.1), "better: +0.10, 95 % 0.01 to 0.19"),
        ((9, -0.1, -0.19, -0.01, 0.5, 0.1), "worse: -0.10, 95 % -0.19 to -0.01"),
        (
            (NEEDED, 0.1, 0.0, 0.2, 0.5, 0.1),
            f"no evidence either way; {NEEDED} pairs are enough to detect a difference of 0.1 (now +0.10, 95 % 0.00 to 0.20)",
        ),
        (
            (NEEDED - 11, -0.1, -0.2, 0.0, 0.5, 0.1),
            "no evidence either way; about 11 more pairs would detect a difference of 0.1 (now -0.10, 95 % -0.20 to 0.00)",
        ),
        (
            (9, 0.1, -0.2, 0.4, None, 0.1),
            (
                "no evidence either way; the number of pairs that would detect a difference of 0.1 is not known"
                " (now +0.10, 95 % -0.20 to 0.40)"
            ),
        ),
        (
            (9, 0.1, -0.2, 0.4, 0.5, None),
            (
                "no evidence either way; the smallest difference that matters on a raw scale is not set (--difference)"
                " (now +0.10, 95 % -0.20 to 0.40)"
            ),
        ),
    ],
)
def test_a_sentence_on_pairs_follows_the_interval(arguments, sentence):
    assert paired_sentence(*arguments) == sentence


@pytest.mark.parametrize(
    ("p_value", "adjusted", "text"),
    [
        (0.049, 0.05, "no evidence either way; p adjusted for all criteria is 0.05 (now x)"),
        (0.049, 0.0499, "better: x"),
        (0.05, 0.06, "better: x"),
    ],
)
def test_a_sentence_is_taken_back_when_only_the_adjusted_p_value_is_5_percent(p_value, adjusted, text):
    test = {"p_value": p_value, "adjusted_p_value": adjusted}
    assert adjusted_paired_sentence("better: x", test) == text
    assert adjusted_paired_sentence("no difference: x", test) == "no difference: x"


@pytest.mark.parametrize(
    ("chance", "text"),
    [(0.9995, "more than 99.9%"), (0.99949, "99.9%"), (0.0005, "0.1%"), (0.00049, "less than 0.1%"), (0.5, "50.0%")],
)
def test_a_chance_is_never_0_or_100_percent(chance, text):
    assert chance_text(chance) == text


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((0.5, 0.5, 0.5), "+0.50, 95 % 0.50 to 0.50"),
        ((0.0, -1e15, 1e15), "+0.00, 95 % -1e+15 to 1e+15"),
        ((0.001, 0.0005, 0.0015), "+0.0010, 95 % 0.0005 to 0.0015"),
        ((0.0001, 0.0, 10.0), "+0.0001, 95 % 0.00 to 10.00"),
        ((1e-9, 0.0, 1e-8), "+0.000000001, 95 % 0.000000 to 0.00000001"),
        ((20.0, 5.0, 35.0), "+20.00, 95 % 5.00 to 35.00"),
    ],
)
def test_an_interval_has_the_digits_that_its_width_needs(ends, text):
    assert interval_text(*ends) == text


def test_counts_and_unknown_figures_have_words():
    assert (count_subjects(1), count_subjects(2), count_subjects(1200)) == ("1 subject", "2 subjects", "1,200 subjects")
    assert unknown_text({"reasons": {"t": "why", "n_baseline": "1 of 2"}}) == "too few scores"
    assert unknown_text({"reasons": {"t": "why"}}) == "not known: why"
    assert unknown_text({}) == "not known: it is not defined"
    assert pairs_needed(1e200, 1e-200) is None
    assert pairs_needed(0.0, 0.1) == 2


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        ((None, None, None), f"not corrected: 1,200 labeled pairs of the {MIN_LABELED_PAIRS} needed"),
        ((0.1, None, None), "by 1,200 labeled pairs +0.1000, without an interval"),
        ((0.1, 0.01, 0.19), "by 1,200 labeled pairs better: +0.1000, 95 % 0.0100 to 0.1900"),
        ((0.1, 0.0, 0.2), "by 1,200 labeled pairs no evidence either way: +0.1000, 95 % 0.0000 to 0.2000"),
        ((-0.1, -0.2, 0.0), "by 1,200 labeled pairs no evidence either way: -0.1000, 95 % -0.2000 to 0.0000"),
        ((-0.1, -0.2, -0.01), "by 1,200 labeled pairs worse: -0.1000, 95 % -0.2000 to -0.0100"),
    ],
)
def test_a_corrected_difference_has_a_sentence(figures, text):
    names = ("mean", "ci_low", "ci_high")
    assert correction_text({"n_labelled": 1200, **dict(zip(names, figures, strict=True))}) == text
