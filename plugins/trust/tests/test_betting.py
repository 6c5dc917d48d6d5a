"""The test that is valid at any time, against a plain re-implementation and by simulation."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast_trust.statistics.betting import BETS, BettingTest

GRID = [step / 1000 for step in range(1001)]


class Plain:
    """Capital of one side against one mean, as products of numbers as in the paper."""

    def __init__(self, mean: float, total: int | None) -> None:
        self.mean, self.total, self.seen, self.sum = mean, total, 0, 0.0
        self.capital = [1.0] * len(BETS)
        self.highest = 1.0

    def null(self) -> float:
        if self.total is None:
            return self.mean
        left = self.total - self.seen
        return (self.total * self.mean - self.sum) / left if left else math.nan

    def take(self, x: float, *, up: bool) -> None:
        m = self.null()
        room, gain = (m, x - m) if up else (1 - m, m - x)
        if room > 0:
            self.capital = [capital * (1 + bet * gain / room) for capital, bet in zip(self.capital, BETS, strict=True)]
        elif gain > 0:
            self.capital = [math.inf] * len(BETS)
        self.seen, self.sum = self.seen + 1, self.sum + x
        self.highest = max(self.highest, sum(self.capital) / len(BETS))


def plain_decision(scores, at, alpha, total):
    up, down = Plain(at, total), Plain(at, total)
    for n, score in enumerate(scores, 1):
        up.take(0 if score is None else score, up=True)
        down.take(1 if score is None else score, up=False)
        if up.highest >= 1 / alpha or (total and total * at - up.sum <= 1e-9 * total):
            return "above", n
        if down.highest >= 1 / alpha or (total and total * at - down.sum - (total - n) > 1e-9 * total):
            return "below", n
    return None, len(scores)


SCORES = st.lists(st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1), st.none()), min_size=1, max_size=60)


@given(SCORES, st.floats(0.05, 0.95), st.sampled_from([0.05, 0.2]), st.sampled_from([None, 0, 7]))
def test_decides_where_the_plain_products_do(scores, at, alpha, rest):
    total = None if rest is None else len(scores) + rest
    test = BettingTest(at, alpha=alpha, total=total)
    for score in scores:
        test.observe(score)
    assert (test.decision, test.n) == plain_decision(scores, at, alpha, total)


@given(SCORES, st.floats(0.05, 0.95), st.sampled_from([None, 3]))
def test_many_at_once_are_as_one_by_one(scores, at, rest):
    total = None if rest is None else len(scores) + rest
    single, batch = BettingTest(at, total=total), BettingTest(at, total=total)
    for score in scores:
        single.observe(score)
    batch.observe_all(scores)
    assert single.document() == batch.document()


@pytest.mark.parametrize("total", [None, 6000])
def test_the_interval_of_thousands_is_the_same_whether_it_is_asked_for_on_the_way_or_not(total):
    scores = np.random.default_rng(4).permutation([0.3, 0.7] * 2500).tolist()
    often, once = BettingTest(0.5, total=total), BettingTest(0.5, total=total)
    for start in range(0, len(scores), 500):
        often.observe_all(scores[start : start + 500])
        often.interval()
    once.observe_all(scores)
    assert once.n == 5000
    assert once.document() == often.document()


@pytest.mark.parametrize("total", [None, 90])
def test_the_interval_has_the_means_that_neither_side_rejects_on_the_grid(total):
    scores = np.random.default_rng(3).beta(4, 2, 60).tolist()
    test = BettingTest(0.5, total=total)
    test.decision = None
    for score in scores:
        test._take([(score, score, 1)])  # also behind a decision
        test.decision = None
    stands = []
    for mean in GRID:
        up, down = Plain(mean, total), Plain(mean, total)
        possible = True
        for score in scores:
            up.take(score, up=True)
            down.take(score, up=False)
            left = 0 if total is None else total - up.seen
            possible = possible and (total is None or -1e-9 <= total * mean - up.sum <= left + 1e-9)
        if possible and max(up.highest, down.highest) < 2 / 0.05:
            stands.append(mean)
    assert test.interval() == (stands[0], stands[-1])


def test_evidence_is_exact_by_fractions():
    """The decision comes with the row at which the mean of exact products passes 1/alpha, without an offset by rounding."""
    at, alpha, scores = (
        Fraction(6, 10),
        Fraction(1, 20),
        [Fraction(9, 10), Fraction(1), Fraction(7, 10), Fraction(1)] * 40,
    )
    bets = [Fraction(str(bet)) for bet in BETS]
    capital = [Fraction(1)] * len(bets)
    for n, score in enumerate(scores, 1):  # noqa: B007
        capital = [have * (1 + bet * (score - at) / at) for have, bet in zip(capital, bets, strict=True)]
        if sum(capital) / len(bets) >= 1 / alpha:
            break
    test = BettingTest(0.6)
    test.observe_all([float(score) for score in scores])
    assert (test.decision, test.n) == ("above", n)


@pytest.mark.parametrize("values", [[1.0] * 3 + [0.0] * 7, [0.0] * 7 + [1.0] * 3, [0.3] * 10, [0.7] * 10])
@pytest.mark.parametrize("at", [0.299, 0.3, 0.301, 0.7])
def test_the_whole_file_always_decides_as_its_mean_lies(values, at):
    test = BettingTest(at, alpha=1e-6, total=len(values))
    test.observe_all(values)
    assert test.decision == ("above" if sum(values) / len(values) >= at - 1e-9 else "below")


def test_the_interval_of_a_whole_file_is_its_mean():
    test = BettingTest(0.5001, alpha=1e-9, total=4)
    test.observe_all([0.1, 0.9, 0.5, 0.5])
    assert test.interval() == pytest.approx((0.5, 0.5))


def test_a_file_decides_at_once_where_the_rest_cannot_change_it():
    test = BettingTest(0.5, alpha=1e-9, total=10)
    assert [test.observe(1.0) for _ in range(5)] == [None] * 4 + ["above"]
    test = BettingTest(0.5, alpha=1e-9, total=10)
    assert [test.observe(0.0) for _ in range(6)] == [None] * 5 + ["below"]


def test_a_missing_score_counts_against_either_decision():
    complete, missing = BettingTest(0.5), BettingTest(0.5)
    for _ in range(30):
        complete.observe(1.0)
        missing.observe(1.0)
        missing.observe(None)
    assert complete.decision == "above"
    assert missing.decision is None
    low, high = missing.interval()
    assert low < 0.5 < high
    test = BettingTest(0.5, total=2)
    assert [test.observe(None), test.observe(None)] == [None, None]  # nobody knows, at the end of the file neither


def test_paired_differences_are_mapped_onto_half():
    differences = np.random.default_rng(0).choice([-1.0, 0.0, 0.0, 1.0, 1.0], 300)
    paired, mapped = BettingTest(0.1, paired=True), BettingTest(0.55)
    paired.observe_all(differences.tolist())
    mapped.observe_all(((differences + 1) / 2).tolist())
    assert (paired.decision, paired.n) == (mapped.decision, mapped.n)
    low, high = paired.interval()
    assert low <= differences.mean() <= high
    assert -1 <= low < high <= 1


def test_sessions_are_one_observation_each():
    """Σ(x - at)/longest, mapped from [-1, 1] like a difference."""
    rng = np.random.default_rng(5)
    sessions = [rng.random(size).round(2).tolist() for size in rng.integers(1, 5, 200)]
    test, mapped = BettingTest(0.35, longest=4), BettingTest(0.0, paired=True)
    for session in sessions:
        test.observe_session(session)
        mapped.observe(sum(score - 0.35 for score in session) / 4)
    assert (test.decision, test.n) == (mapped.decision, mapped.n)
    assert test.decision == "above"


def test_after_a_decision_nothing_changes():
    test = BettingTest(0.5)
    test.observe_all([1.0] * 100)
    before = test.document()
    assert test.observe_all([0.0] * 500) == "above"
    assert test.document() == before


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan])
def test_a_score_outside_the_bounds_is_refused(wrong):
    with pytest.raises(ValueError, match="not between 0 and 1"):
        BettingTest(0.5).observe(wrong)


@pytest.mark.parametrize(
    "options", [{"at": 0}, {"at": 1}, {"at": 0.5, "alpha": 0}, {"at": 0.5, "total": 0}, {"at": 0.5, "longest": 0}]
)
def test_a_test_that_is_none_is_refused(options):
    with pytest.raises(ValueError, match="invalid test"):
        BettingTest(**options)


def wrong_decisions(values, at, total=None):
    """Return how many rows of *values* are decided ``above`` and how many ``below``."""
    tests = [BettingTest(at, total=total) for _ in values]
    decisions = [test.observe_all(row) for test, row in zip(tests, values, strict=True)]
    return decisions.count("above"), decisions.count("below")


@pytest.mark.slow
@pytest.mark.parametrize("mean", [0.5, 0.9])
def test_false_decisions_are_at_most_alpha_in_2000_looks(mean):
    """With a seed; ``benchmarks/anytime.py`` has 2,000 runs. At the line each side may be wrong in alpha = 5 % of runs."""
    rng = np.random.default_rng(11)
    runs = 200
    above, below = wrong_decisions((rng.random((runs, 2000)) < mean).astype(float), mean)
    most = 0.05 * runs + 3 * math.sqrt(0.05 * 0.95 * runs)
    assert max(above, below) <= most


@pytest.mark.slow
def test_a_file_hardly_ever_disagrees_with_its_whole():
    rng = np.random.default_rng(12)
    wrong, runs = 0, 300
    for _ in range(runs):
        values = (rng.random(400) < 0.8).astype(float)
        test = BettingTest(0.8, total=400)
        wrong += test.observe_all(rng.permutation(values)) != ("above" if values.mean() >= 0.8 - 1e-9 else "below")
    assert wrong <= 0.05 * runs + 3 * math.sqrt(0.05 * 0.95 * runs)


@pytest.mark.slow
def test_correlated_sessions_do_not_break_it():
    """Sessions of 5 with an intraclass correlation of .3, at the line."""
    rng = np.random.default_rng(13)
    wrong, runs = 0, 200
    for _ in range(runs):
        chance = rng.beta(0.5 * (1 / 0.3 - 1), 0.5 * (1 / 0.3 - 1), 200)
        test = BettingTest(0.5, longest=5)
        for session in (rng.random((200, 5)) < chance[:, None]).astype(float).tolist():
            if test.observe_session(session) is not None:
                wrong += 1
                break
    assert wrong <= 2 * 0.05 * runs
