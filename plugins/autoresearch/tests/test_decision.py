"""The decision to keep or discard is one pure function."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast_autoresearch.decision import Before, Measured, Policy, confidence, decide, mad
from dicast_autoresearch.log import Experiment
from dicast_autoresearch.session import Session
from dicast_autoresearch.status import best_so_far

LOWER = Policy(direction="lower_is_better")


def decided(value, kept_values=(100.0,), policy=LOWER, **fields):
    decision = decide(Measured(value, **fields), Before(kept_values, kept_values), policy)
    return decision.decision, decision.reason


def test_the_rules_decide_in_their_order():
    assert decided(90.0, ()) == ("keep", "baseline")
    assert decided(90.0) == ("keep", "metric_improved")
    assert decided(100.0) == ("discard", "not_better_than_best")
    assert decided(50.0, checks=False) == ("discard", "checks_failed")
    assert decided(None) == ("blocked", "metric_missing")
    assert decided(math.nan) == ("blocked", "metric_invalid")
    assert decided(math.inf, ()) == ("blocked", "metric_invalid")
    assert decided(None, checks=False) == ("discard", "checks_failed")


def test_an_improvement_has_to_be_large_enough():
    least = Policy(direction="lower_is_better", min_delta=5)
    assert decided(96.0, policy=least) == ("discard", "below_min_delta")
    assert decided(95.0, policy=least) == ("keep", "metric_improved")
    share = Policy(direction="higher_is_better", min_relative_delta=0.1)
    assert decided(109.0, policy=share) == ("discard", "below_min_relative_delta")
    assert decided(0.001, (0.0,), share) == ("keep", "metric_improved")
    assert decide(Measured(96.0), Before((100.0,), (100.0,)), least).needed == 5


def test_noise_needs_evidence_and_a_confidence():
    sure = Policy(direction="lower_is_better", noise="confidence", min_confidence=2)
    assert decided(9.0, (10.0,), sure) == ("retry", "insufficient_noise_evidence")
    decision = decide(Measured(8.0), Before((10.0, 12.0, 9.0), (10.0, 9.0)), sure)
    assert (decision.decision, decision.reason, decision.delta, decision.noise) == (
        "discard",
        "below_confidence",
        1.0,
        1.0,
    )
    assert decide(Measured(6.0), Before((10.0, 12.0, 9.0), (10.0, 9.0)), sure).decision == "keep"
    flat = Policy(direction="lower_is_better", noise="confidence", retry=False)
    assert decided(9.0, (10.0,), flat) == ("discard", "insufficient_noise_evidence")


def test_the_newest_kept_values_can_set_the_bar():
    recent = Policy(noise="recent")
    assert decided(100.009, policy=recent) == ("discard", "within_noise")
    assert decided(100.02, policy=recent) == ("keep", "metric_improved")
    decision = decide(Measured(15.5), Before((), (10.0, 12.0, 15.0)), recent)
    assert (decision.reason, decision.noise, decision.needed) == ("within_noise", 2.0, 2.0)


def test_a_falling_validation_value_is_not_kept():
    guard = Policy(max_validation_drop=0.05)
    before = Before((0.5,), (0.5,), 0.8)
    assert decide(Measured(0.6, validation=0.76), before, guard).decision == "keep"
    assert decide(Measured(0.6, validation=0.7), before, guard).reason == "validation_dropped"
    assert decide(Measured(0.6), before, guard).reason == "validation_missing"


def test_confidence_is_the_gain_in_units_of_the_spread():
    assert mad([10, 12, 9, 8]) == 1.0
    assert confidence([10, 12, 9, 8], [10, 9, 8], "lower_is_better") == 2.0
    assert confidence([5, 5, 5], [5], "lower_is_better") is None
    assert confidence([5, 4], [4], "lower_is_better") is None
    assert confidence([-3, 0, -1], [-3, -1, 0], "higher_is_better") == 3.0


numbers = st.one_of(st.none(), st.floats(-1e6, 1e6), st.just(math.nan))
policies = st.builds(
    Policy,
    direction=st.sampled_from(["higher_is_better", "lower_is_better"]),
    min_delta=st.floats(0, 10),
    min_relative_delta=st.floats(0, 1),
    noise=st.sampled_from(["none", "confidence", "recent"]),
    retry=st.booleans(),
)
histories = st.lists(st.floats(-1e6, 1e6), max_size=8)


@given(numbers, st.booleans(), histories, histories, policies)
def test_what_is_kept_is_better_and_the_same_question_has_the_same_answer(value, checks, values, kept_values, policy):
    run, before = Measured(value, checks), Before([*values, *kept_values], kept_values)
    decision = decide(run, before, policy)
    assert decision == decide(run, before, policy)
    best = before.best(policy.direction)
    if decision.decision == "keep":
        assert checks
        sign = 1 if policy.direction == "higher_is_better" else -1
        assert best is None or sign * (value - best) > 0
    mirrored = Policy(
        min_delta=policy.min_delta,
        min_relative_delta=policy.min_relative_delta,
        noise=policy.noise,
        retry=policy.retry,
        direction="lower_is_better" if policy.direction == "higher_is_better" else "higher_is_better",
    )
    opposite = Before([-earlier for earlier in before.values], [-earlier for earlier in kept_values])
    other = decide(Measured(value and -value, checks), opposite, mirrored)
    assert (other.decision, other.reason) == (decision.decision, decision.reason)


@pytest.mark.parametrize("word", ["higher", "higher_is_better"])
def test_both_vocabularies_of_directions_are_known(word):
    from dicast_autoresearch.decision import DIRECTIONS

    assert DIRECTIONS[word] == "higher_is_better"


def test_a_session_keeps_the_smallest_improvement_unless_its_file_asks_for_more():
    session = Session(name="s", primary="loss", direction="lower", command="true", scope=("a.py",))
    smallest = math.nextafter(100.0, 0.0)
    assert decided(smallest, policy=session.policy) == ("keep", "metric_improved")
    strict = Session(name="s", primary="loss", direction="lower", command="true", scope=("a.py",), min_delta=1.0)
    assert decided(99.5, policy=strict.policy) == ("discard", "below_min_delta")


@pytest.mark.parametrize(
    ("direction", "bests"), [("lower_is_better", [5, 5, 3, 3]), ("higher_is_better", [5, 5, 5, 9])]
)
def test_the_best_kept_value_follows_the_direction(direction, bests):
    session = Session(name="s", primary="loss", direction=direction, command="true", scope=("a.py",))
    entries = [("crash", None), ("keep", 5.0), ("discard", 1.0), ("keep", 3.0), ("keep", 9.0)]
    experiments = [
        Experiment(experiment=number, status=status, hypothesis="h", primary_metric=value)
        for number, (status, value) in enumerate(entries)
    ]
    assert best_so_far(experiments, session) == bests
