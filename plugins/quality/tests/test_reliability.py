"""The statistics, compared with other formulations of their definitions."""

from __future__ import annotations

import random
import re
from collections import Counter
from itertools import combinations, permutations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dicast_quality.percentile import percentile
from dicast_quality.reliability import BLOCKS, Tally

SCORES = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]))
TABLES = st.integers(2, 5).flatmap(
    lambda raters: st.lists(st.lists(st.none() | SCORES, min_size=raters, max_size=raters), min_size=1, max_size=30)
)


def tally(rows, window=0.15):
    """Return a tally of *rows*, with None for a missing rating."""
    result = Tally(window)
    for row in rows:
        result.add({rater: score for rater, score in enumerate(row) if score is not None})
    return result


def coincidences(rows):
    """Return Krippendorff's alpha by its coincidence matrix (Content Analysis, 11.3.4); None if it is undefined."""
    matrix = Counter()
    for row in rows:
        scores = [score for score in row if score is not None]
        for first, second in permutations(scores, 2):
            matrix[first, second] += 1 / (len(scores) - 1)
    margins = Counter()
    for (first, _), weight in matrix.items():
        margins[first] += weight
    n = sum(margins.values())
    observed = sum(weight * (first - second) ** 2 for (first, second), weight in matrix.items())
    expected = sum(margins[a] * margins[b] * (a - b) ** 2 for a in margins for b in margins)
    return 1 - (n - 1) * observed / expected if expected > 1e-9 else None


def kappa(pairs):
    """Return Cohen's kappa from shares."""
    n = len(pairs)
    observed = sum((a >= 0.5) == (b >= 0.5) for a, b in pairs) / n
    first, second = (sum(pair[place] >= 0.5 for pair in pairs) / n for place in (0, 1))
    chance = first * second + (1 - first) * (1 - second)
    return None if chance == 1 else (observed - chance) / (1 - chance)


@given(TABLES)
def test_alpha_is_the_one_of_the_coincidence_matrix(rows):
    expected = coincidences(rows)
    assume(expected is not None)
    assert tally(rows).alpha == pytest.approx(expected, abs=1e-9)


@given(TABLES)
def test_kappa_of_each_pair_is_cohens(rows):
    kappas = {pair.raters: (pair.n, pair.kappa) for pair in tally(rows).pairs}
    for first, second in combinations(range(len(rows[0])), 2):
        both = [(row[first], row[second]) for row in rows if row[first] is not None and row[second] is not None]
        if both:
            n, value = kappas[first, second]
            assert (n, value) == (len(both), pytest.approx(kappa(both), abs=1e-9))
        else:
            assert (first, second) not in kappas


@given(TABLES)
def test_order_of_subjects_changes_no_figure(rows):
    forward, backward = tally(rows), tally(rows[::-1])
    assert forward.n == backward.n
    assert forward.within == backward.within
    assert forward.pairs == backward.pairs
    assert forward.alpha == pytest.approx(backward.alpha, abs=1e-9)


@given(st.lists(SCORES, min_size=2, max_size=20, unique=True))
def test_rater_agrees_with_itself(scores):
    assume(max(scores) - min(scores) > 1e-3)
    result = tally([(score, score) for score in scores])
    assert (result.alpha, result.within) == (1, 1)
    (pair,) = result.pairs
    assert pair.kappa in (1, None)


def test_textbook_table_has_the_textbook_alpha():
    # Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), C: four observers, interval metric: 0.849
    units = zip(
        (1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None),
        (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3),
        (None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None),
        (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None),
        strict=True,
    )
    scaled = [[None if score is None else score / 5 for score in unit] for unit in units]
    assert round(tally(scaled).alpha, 3) == 0.849


def test_alpha_is_not_defined_where_all_scores_are_equal():
    for score in (0.0, 0.1, 0.7, 1.0):
        result = tally([(score, score)] * 40)
        assert (result.alpha, result.interval()) == (None, None)


def test_alpha_keeps_its_digits_where_all_scores_are_nearly_equal():
    rows = [(0.9 + 1e-7 * step, 0.9 + 1e-7 * (step % 7)) for step in range(50)]
    wide = [((first - 0.9) * 1e6, (second - 0.9) * 1e6) for first, second in rows]
    assert tally(rows).alpha == pytest.approx(coincidences(wide), abs=1e-6)


def test_difference_of_the_window_itself_is_within():
    assert tally([(0.8, 0.65)]).within == 1
    assert tally([(0.8, 0.6499)]).within == 0
    assert tally([(0.5, 0.6, 0.75)]).within == 0


def test_subject_with_one_score_says_nothing():
    result = tally([(0.9, None), (0.1, 0.2), (None, 0.3)])
    assert (result.n, [(pair.raters, pair.n) for pair in result.pairs]) == (1, [((0, 1), 1)])
    assert {number: (rater.unit_count, rater.compared) for number, rater in result.raters.items()} == {
        0: (2, 1),
        1: (2, 1),
    }


def test_failure_is_counted_and_no_score():
    result = Tally(0.15)
    assert result.add({0: 0.9, 1: None}) is None
    assert result.add({0: 0.9, 1: 0.4}) == pytest.approx(0.5)
    assert (result.n, result.raters[1].unit_count, result.raters[1].failed, result.raters[1].passes) == (1, 2, 1, 0)


def test_interval_is_the_same_again_and_holds_alpha():
    draw = random.Random(4)
    rows = [(score, min(1.0, max(0.0, score + draw.gauss(0, 0.2)))) for score in (draw.random() for _ in range(300))]
    result = tally(rows)
    interval = result.interval()
    assert interval == result.interval() == tally(rows).interval()
    assert interval.low < result.alpha < interval.high < interval.low + 0.2


@pytest.mark.slow
@pytest.mark.parametrize("presort", [False, True])
def test_interval_of_many_subjects_is_that_of_resampling_each(presort):
    draw = random.Random(8)
    firsts = [draw.random() for _ in range(4 * BLOCKS)]
    rows = [
        (score, min(1.0, max(0.0, score + draw.gauss(0, 0.2)))) for score in (sorted(firsts) if presort else firsts)
    ]
    interval = tally(rows).interval()
    low, high = interval.low, interval.high
    assert "in 1,000 random groups" in interval.method
    alphas = sorted(tally(draw.choices(rows, k=len(rows))).alpha for _ in range(120))
    expected = percentile(alphas, 0.025), percentile(alphas, 0.975)
    assert high - low == pytest.approx(expected[1] - expected[0], rel=0.3)
    assert (low, high) == (pytest.approx(expected[0], abs=0.004), pytest.approx(expected[1], abs=0.004))


def test_resamples_of_equal_scores_alone_are_left_out_and_counted():
    interval = tally([(1.0, 1.0)] * 17 + [(0.0, 0.0)] * 2 + [(0.0, 0.5)]).interval()
    assert interval.low < interval.high
    assert re.search(r"2,000 resamples, seed 0, \d\d of them left out", interval.method)


def test_no_interval_where_all_variation_comes_from_one_subject():
    result = tally([(1.0, 1.0)] * 9 + [(0.0, 0.0)])
    assert (result.alpha, result.interval()) == (1, None)


def test_no_interval_of_one_subject_and_a_narrow_one_of_perfect_agreement():
    assert (tally([(0.9, 0.3)]).alpha, tally([(0.9, 0.3)]).interval()) == (0, None)
    result = tally([(score / 20, score / 20) for score in range(20)])
    interval = result.interval()
    assert (result.alpha, interval.low, interval.high) == (1, 1, 1)


def test_percentiles_are_interpolated():
    assert percentile([0.2, 0.4, 0.6, 0.8, 1.0], 0.5) == 0.6
    assert percentile([0.2, 0.4, 0.6, 0.8, 1.0], 0.1) == pytest.approx(0.28)
    assert percentile([0.3], 0.1) == 0.3


def test_percentile_that_falls_on_a_value_is_that_value():
    values = [n / 7 for n in range(201)]
    assert [percentile(values, share) for share in (0.07, 0.1, 0.14, 0.28, 0.29, 0.57, 0.975)] == [
        values[n] for n in (14, 20, 28, 56, 58, 114, 195)
    ]
