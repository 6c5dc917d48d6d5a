"""Labels compared with the ledger: the test of equal chances, and thresholds of few labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicast_trust.calibration.ladder import LabeledSignals, RungTest, climb, thresholds
from dicast_trust.statistics.representativeness import PERMUTATIONS, label_difference

LEVELS = [0.5, 0.6, 0.7, 0.8, 0.9]


def names(n):
    return [f"r{number}" for number in range(n)]


def brute_force(signals, is_labeled, rungs, times, seed):
    """Permute the labels over the subjects, one permutation after the other."""
    random = np.random.default_rng(seed)

    def difference(labeled):
        shares = [((signals[labeled] >= at).mean(), (signals >= at).mean()) for at in rungs]
        return max(abs(labeled_share - all_share) for labeled_share, all_share in shares)

    observed = difference(is_labeled)
    drawn = [difference(random.permutation(is_labeled)) for _ in range(times)]
    return observed, (1 + sum(value >= observed - 1e-12 for value in drawn)) / (1 + times)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1_000), st.integers(5, 60), st.floats(0, 1))
def test_p_value_is_that_of_permutations_one_by_one(seed, labels, shift):
    random = np.random.default_rng(seed)
    signals = random.choice(LEVELS, 150)
    chances = np.exp(3 * shift * signals)
    is_labeled = np.isin(np.arange(150), random.choice(150, labels, replace=False, p=chances / chances.sum()))
    difference = label_difference(signals, is_labeled, LEVELS, names(150), seed)
    greatest, p_value = brute_force(signals, is_labeled, LEVELS, 400, seed)
    assert difference.greatest == pytest.approx(greatest)
    assert abs(difference.p_value - p_value) <= 4.5 * np.sqrt(p_value * (1 - p_value) / 400) + 0.01


def rejections(groups, draw, times=200):
    """Return the share of random draws that count as not drawn from the ledger."""
    random, count = np.random.default_rng(3), 0
    for seed in range(times):
        signals, is_labeled = draw(random)
        difference = label_difference(signals, is_labeled, LEVELS, groups, seed)
        count += difference is not None and difference.is_significant
    return count / times


def test_random_labels_are_refused_in_1_percent_of_draws():
    def draw(random):
        return random.choice(LEVELS, 500), np.isin(np.arange(500), random.choice(500, 60, replace=False))

    assert rejections(names(500), draw) <= 0.04


@pytest.mark.slow
def test_random_sessions_are_refused_in_1_percent_of_draws():
    """Subjects of a session have one confidence: permuting single subjects would refuse a third of these draws."""
    sessions = np.repeat(np.arange(60), 10)

    def draw(random):
        labeled = random.choice(60, 20, replace=False)
        return random.choice(LEVELS, 60)[sessions], np.isin(sessions, labeled)

    assert rejections([f"s{number}" for number in sessions], draw, 100) <= 0.05


def test_all_subjects_labeled_need_no_test():
    assert label_difference(np.ones(5), np.ones(5, bool), [1.0], names(5), 0) is None


def test_p_value_has_the_floor_of_its_permutations():
    signals = np.repeat([0.9, 0.5], 100)
    difference = label_difference(signals, signals > 0.8, [0.9, 0.5], names(200), 0)
    assert (difference.greatest, difference.p_value) == (0.5, 1 / (1 + PERMUTATIONS))


def wrong_share(signals, rates, labels, random):
    """Return the error rate of the subjects kept by a calibration of *labels* labels; None without a threshold."""
    drawn = random.choice(len(signals), labels, replace=False)
    errors = (random.random(len(signals)) < rates).astype(int)
    result = climb(
        LabeledSignals(signals[drawn], errors[drawn], np.arange(labels)), thresholds(signals), RungTest(0.1, 0.1)
    ).threshold
    return None if result is None else rates[signals >= result].mean()


@pytest.mark.parametrize("labels", [25, 40, 80])
@pytest.mark.parametrize("tail", [0.05, 0.3])
def test_thresholds_of_few_labels_are_wrong_in_at_most_alpha(labels, tail):
    """A share *tail* of subjects lies below nearly all labels and is wrong half the time; the rest is at the boundary above a line."""
    random = np.random.default_rng(labels)
    signals = np.concatenate([random.uniform(0.7, 1, 2_000), random.uniform(0.0, 0.7, int(2_000 * tail))])
    rates = np.where(signals >= 0.7, 0.08 + 0.1 * (1 - signals), 0.5)
    shares = [wrong_share(signals, rates, labels, random) for _ in range(400)]
    assert np.mean([share is not None and share > 0.1 for share in shares]) <= 0.14


def test_threshold_is_a_signal_of_a_labeled_subject():
    random = np.random.default_rng(1)
    signals = random.random(3_000)
    for _ in range(50):
        drawn = random.choice(3_000, 30, replace=False)
        labeled = LabeledSignals(signals[drawn], np.zeros(30, int), np.arange(30))
        result = climb(labeled, thresholds(signals), RungTest(0.1, 0.1))
        assert result.threshold == labeled.signals[labeled.signals >= result.chosen.threshold].min()
