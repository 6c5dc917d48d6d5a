from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, Failure, Score
from dicast.testing import run_pipeline, sample
from dicast_outcome import StepScore

GOOD = {"step_utility": 0.5, "was_repeated": False, "verification_delta": 2, "params_valid": True}
BAD = {"step_utility": -1, "was_repeated": True, "verification_delta": -1, "params_valid": False}
NAMES = ("step_utility_weight", "repetition_weight", "verification_weight", "schema_weight")


def judged(output, **options) -> Score | Failure:
    return StepScore(**options).score(sample(output))


def value(output, **options) -> float:
    score = judged(output, **options)
    assert isinstance(score, Score), score
    return score.value


def message(output, **options) -> str:
    failure = judged(output, **options)
    assert isinstance(failure, Failure), failure
    assert failure.kind == "missing_input"
    failure.message.encode()
    return failure.message


def without(name: str, **fields) -> dict:
    return {key: item for key, item in GOOD.items() if key != name} | fields


# The formula


def test_a_useful_new_step_that_mends_tests_scores_9_tenths():
    assert value(GOOD) == pytest.approx(0.9)


def test_a_useless_repeated_step_that_breaks_tests_scores_0():
    assert value(BAD) == 0.0


def test_the_best_step_scores_1_exactly():
    assert value(GOOD | {"step_utility": 1}) == 1.0


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({"step_utility": -1}, 0.3),
        ({"step_utility": 0}, 0.1),
        ({"was_repeated": True}, 0.3),
        ({"verification_delta": 0}, 0.1),
        ({"verification_delta": -5}, 0.2),
        ({"verification_delta": 1}, 0.0),
        ({"params_valid": False}, 0.1),
    ],
)
def test_each_part_has_its_share(changes, lost):
    assert value(GOOD | changes) == pytest.approx(0.9 - lost)


def test_every_part_is_named_in_the_signals():
    score = judged(GOOD | {"tests_before": 3, "tests_after": 5})
    assert score.signals == {
        "step_utility": 0.5,
        "tests_before": 3,
        "tests_after": 5,
        "verification_delta": 2,
        "was_repeated": False,
        "params_valid": True,
        "utility_score": 0.75,
        "repetition_score": 1.0,
        "verification_score": 1.0,
        "schema_score": 1.0,
    }
    assert score.details == "utility 0.5, new, tests +2, parameters valid"
    assert judged(BAD).details == "utility -1, repeated, tests -1, parameters invalid"


@given(
    st.floats(-1, 1),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.booleans(),
    st.lists(st.integers(0, 1000), min_size=4, max_size=4).filter(any),
)
def test_the_score_is_the_weighted_sum_of_its_parts(utility, repeated, delta, valid, shares):
    weights = [share / sum(shares) for share in shares]
    step = {"step_utility": utility, "was_repeated": repeated, "verification_delta": delta, "params_valid": valid}
    tests = 1 if delta > 0 else 0.5 if delta == 0 else 0
    expected = sum(
        weight * part for weight, part in zip(weights, ((utility + 1) / 2, 1 - repeated, tests, valid), strict=True)
    )
    options = dict(zip(NAMES, weights, strict=True))
    result = judged(step, **options)
    assert 0.0 <= result.value <= 1.0
    assert result.value == pytest.approx(expected)
    assert judged(json.dumps(step), **options) == result == judged(step, **options)


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_more_utility_is_never_worth_less(low, high):
    low, high = sorted((low, high))
    assert value(GOOD | {"step_utility": low}) <= value(GOOD | {"step_utility": high})


# The scales of the utility


@given(st.floats(0, 1))
def test_both_scales_say_the_same(norm):
    canonical = value(GOOD | {"step_utility": 2 * norm - 1})
    assert value(without("step_utility", step_utility_norm=norm)) == canonical
    assert value(GOOD | {"step_utility": 2 * norm - 1, "step_utility_norm": norm}) == canonical


def test_scales_that_say_different_things_are_a_failure():
    assert value(GOOD | {"step_utility_norm": 0.755}) == pytest.approx(0.9)
    assert "step_utility_norm is 0.5, but step_utility 0.5 makes 0.75" in message(GOOD | {"step_utility_norm": 0.5})


@pytest.mark.parametrize(
    ("output", "place"),
    [
        (GOOD | {"step_utility": 1.01}, "step_utility is 1.01, not a number from -1 to 1"),
        (GOOD | {"step_utility": "0.5"}, "step_utility is '0.5', not a number from -1 to 1"),
        (GOOD | {"step_utility": True}, "step_utility is true, not a number from -1 to 1"),
        (GOOD | {"step_utility": float("nan")}, "step_utility is nan, not a number from -1 to 1"),
        (without("step_utility", step_utility_norm=-0.5), "step_utility_norm is -0.5, not a number from 0 to 1"),
        (without("step_utility"), "step_utility is missing, and so is step_utility_norm"),
        (without("step_utility", step_utility=None), "step_utility is missing"),
        (GOOD | {"was_repeated": "no"}, "was_repeated is 'no', not true or false"),
        (GOOD | {"was_repeated": 0}, "was_repeated is 0, not true or false"),
        (GOOD | {"params_valid": [1]}, "params_valid is a list, not true or false"),
        (without("params_valid"), "params_valid is missing"),
        (without("verification_delta"), "verification_delta is missing, and so are tests_before and tests_after"),
        (without("verification_delta", tests_before=3), "verification_delta is missing"),
        (GOOD | {"verification_delta": 1.5}, "verification_delta is 1.5, not a whole number"),
        (GOOD | {"verification_delta": True}, "verification_delta is true, not a whole number"),
        (GOOD | {"verification_delta": 10**400}, "verification_delta is a huge number, not a whole number"),
        (GOOD | {"tests_after": -1}, "tests_after is -1, not a number of tests"),
        (GOOD | {"tests_before": "3"}, "tests_before is '3', not a number of tests"),
        (GOOD | {"tests_before": 3, "tests_after": 4}, "verification_delta is 2, but 4 tests after 3 make 1"),
    ],
)
def test_a_step_that_cannot_be_read_is_a_failure_that_names_the_place(output, place):
    assert place in message(output)


def test_everything_that_is_wrong_is_named_at_once():
    text = message({"step_utility": 3, "was_repeted": False})
    for name in (
        "step_utility is 3",
        "verification_delta is missing",
        "was_repeated is missing",
        "params_valid is missing",
    ):
        assert name in text
    assert "did you mean 'was_repeted'" in text


def test_the_delta_is_computed_from_the_counts_of_tests():
    assert value(without("verification_delta", tests_before=3, tests_after=3)) == pytest.approx(0.8)
    assert value(without("verification_delta", tests_before=3, tests_after=5.0)) == pytest.approx(0.9)


# The place of the step


@pytest.mark.parametrize("field", ["steps.0", "/steps/0"])
def test_a_field_names_where_the_step_stands(field):
    for output in ({"steps": [GOOD]}, json.dumps({"steps": [GOOD]}), {"steps": [json.dumps(GOOD)]}):
        assert value(output, field=field) == pytest.approx(0.9)
    assert f"the output has no field {field!r}" in message({"steps": []}, field=field)
    assert f"the output's field {field!r} is 1, not an object" in message({"steps": [1]}, field=field)


@pytest.mark.parametrize(
    "output", [None, "", "prose", "\ud800", b"\xff", 7, [GOOD], "[" * 100_000, float("nan")],
    ids=["none", "empty", "prose", "surrogate", "binary", "number", "list", "deep", "nan"],
)  # fmt: skip
def test_an_output_that_is_no_object_is_a_failure(output):
    assert message(output).startswith("the outcome of the step is not known: the output is ")


@pytest.mark.slow
def test_hostile_values_end_in_a_short_message():
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    huge = "x" * 100_000_000
    for hostile in (deep, huge, {"a": deep}, "\ud800", b"\xff", 10**5000):
        began = time.process_time()
        assert len(message(dict.fromkeys(GOOD, hostile))) < 1_000
        assert len(message({huge: 1, "\ud800": deep})) < 1_000
        assert time.process_time() - began < 2


# The weights


def test_the_weights_are_options():
    only_tests = dict(zip(NAMES, (0, 0, 1, 0), strict=True))
    assert value(GOOD, **only_tests) == 1.0
    assert value(GOOD | {"verification_delta": 0}, **only_tests) == 0.5


def test_weights_that_do_not_sum_to_1_are_refused_and_their_shares_named():
    with pytest.raises(ConfigError) as refused:
        StepScore(step_utility_weight=1.4)
    assert "sum to 2, not to 1" in str(refused.value)
    assert "step_utility_weight 0.7, repetition_weight 0.15, verification_weight 0.1, schema_weight 0.05" in str(
        refused.value
    )
    with pytest.raises(ConfigError, match="sum to 0"):
        StepScore(0, 0, 0, 0)


@pytest.mark.parametrize("weight", [-0.1, float("nan"), float("inf")])
def test_a_weight_is_finite_and_not_negative(weight):
    with pytest.raises(ConfigError, match="schema_weight is"):
        StepScore(schema_weight=weight)


def test_weights_may_be_rounded():
    third = 0.3333333
    assert value(GOOD | {"step_utility": 1}, **dict(zip(NAMES, (third, third, third, 0), strict=True))) == 1.0


def test_an_empty_field_is_refused():
    with pytest.raises(ConfigError, match="field is empty"):
        StepScore(field="")


# From a pipeline file


def test_the_step_score_works_from_yaml_and_a_broken_step_costs_nobody_else_its_score():
    text = "name: steps\nmetrics: [outcome/step_score: {field: step, schema_weight: 0.0, step_utility_weight: 0.5}]"
    steps = [sample({"step": GOOD}, id="good"), sample({"step": {}}, id="broken"), sample({"step": BAD}, id="bad")]
    finished = run_pipeline(text, subjects=steps)
    assert {verdict.subject_id: verdict.score for verdict in finished.verdicts} == pytest.approx(
        {"good": 0.875, "bad": 0}
    )
    assert finished.document["failures"] == {"missing_input": 1}
    assert {verdict.tier for verdict in finished.verdicts} == {"truth"}


def test_wrong_weights_and_names_are_found_when_the_pipeline_is_built():
    with pytest.raises(ConfigError, match="sum to 0.9"):
        run_pipeline("name: x\nmetrics: [outcome/step_score: {schema_weight: 0}]", subjects=[sample(GOOD)])
    with pytest.raises(ConfigError) as refused:
        run_pipeline("name: x\nmetrics: [outcome/step_score: {shema_weight: 0.1}]", subjects=[sample(GOOD)])
    assert refused.value.problems[0].hint == "schema_weight"
