"""The values that components and kernel hand to each other."""

from __future__ import annotations

import math
import pickle
import re
from decimal import Decimal
from fractions import Fraction

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import (
    ONLY,
    Cost,
    Failure,
    InvalidCost,
    InvalidScore,
    Judgment,
    Score,
    ScoringError,
    Secret,
    Subject,
    TraceEvent,
    Trail,
    columns,
    responses,
)

NO_SCORES = [
    1.5,
    -0.1,
    math.nan,
    math.inf,
    -math.inf,
    True,
    False,
    None,
    "0.5",
    Decimal("0.5"),
    Fraction(1, 2),
    [0.5],
    2,
]


@pytest.mark.parametrize("make", [Score, Judgment])
@pytest.mark.parametrize("value", NO_SCORES, ids=repr)
def test_what_is_no_number_from_0_to_1_is_refused_never_clamped(make, value):
    with pytest.raises(InvalidScore, match=r"(value|score) must be a finite number in \[0, 1\]"):
        make(value)
    with pytest.raises(InvalidScore, match=r"confidence must be"):
        make(0.5, value)


@pytest.mark.parametrize(("value", "stored_value"), [(0, 0.0), (1, 1.0), (0.0, 0.0), (1.0, 1.0), (5e-324, 5e-324)])
def test_both_ends_belong_to_the_interval_and_are_floats(value, stored_value):
    for result in (Score(value, value).value, Score(value, value).confidence, Judgment(value).score):
        assert result == stored_value
        assert type(result) is float


@given(st.floats() | st.integers() | st.none() | st.text())
def test_a_score_is_in_the_unit_interval_or_is_not_made(value):
    if type(value) in (int, float) and 0 <= value <= 1:
        assert Score(value).value == value
    else:
        with pytest.raises(InvalidScore, match=re.escape(repr(value))):
            Score(value)


def test_an_unknown_kind_of_failure_or_judge_is_refused_with_the_known_ones():
    with pytest.raises(ScoringError, match=r"'oops'.*judge_call_failed"):
        Failure("oops", "?")
    with pytest.raises(ScoringError, match=r"'robot'.*heuristic, llm"):
        Judgment(0.5, judge_kind="robot")


@pytest.mark.parametrize("value", [Score(0.5), Failure("crashed", "x"), Judgment(0.5), Cost(1), Subject("row", "1")])
def test_values_are_frozen(value):
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        setattr(value, attrs.fields(type(value))[0].name, 1)


# Money


@pytest.mark.parametrize("amount", [0.1, 1.0, True, math.nan, [1], b"1"], ids=repr)
def test_money_is_never_a_binary_float_or_a_boolean(amount):
    with pytest.raises(InvalidCost, match="never"):
        Cost(amount)


@pytest.mark.parametrize("amount", [-1, "-0.01", "NaN", "Infinity", "sNaN", Decimal("-Infinity")])
def test_money_is_finite_and_not_negative(amount):
    with pytest.raises(InvalidCost, match="finite and not negative"):
        Cost(amount)


@pytest.mark.parametrize("text", ["much", "", "1,5", "1e", "0x10"])
def test_money_is_a_decimal(text):
    with pytest.raises(InvalidCost, match="not an amount of money"):
        Cost(text)


@pytest.mark.parametrize("unit", ["eur", "", "USD", None])
def test_an_unknown_unit_is_refused(unit):
    with pytest.raises(InvalidCost, match="usd or msat"):
        Cost(1, unit)


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("0.01 usd", Cost("0.01")),
        (" 500  msat ", Cost(500, "msat")),
        ("0 usd", Cost.zero()),
        ("1e-3 usd", Cost("0.001")),
    ],
)
def test_money_is_read_from_text(text, cost):
    assert Cost.parse(text) == cost


@pytest.mark.parametrize("text", ["0.01", "usd", "0.01usd", "1 eur", "-1 usd"])
def test_text_that_is_no_money_is_refused(text):
    with pytest.raises(InvalidCost):
        Cost.parse(text)


def test_the_units_are_never_added():
    with pytest.raises(InvalidCost, match="usd and msat cannot be added"):
        Cost(1) + Cost(1, "msat")
    with pytest.raises(InvalidCost, match="cannot be added"):
        Cost.unknown() + Cost(1, "msat")


def test_nothing_is_added_whatever_its_unit():
    assert Cost(1, "msat") + Cost.zero() == Cost.zero() + Cost(1, "msat") == Cost(1, "msat")
    assert Cost.zero("msat") + Cost.unknown() == Cost.unknown()


def test_an_unknown_amount_is_not_nothing_and_makes_the_sum_unknown():
    assert not Cost.unknown().is_zero
    assert Cost.zero().is_zero
    assert Cost("0.00").is_zero
    assert (Cost.unknown() + Cost(1)).amount is None
    assert (Cost(1) + Cost.unknown()).amount is None
    assert str(Cost.unknown("msat")) == "unknown msat"


def test_a_sum_names_both_price_lists_once():
    item, two = Cost(1, pricing_version="a"), Cost(1, pricing_version="b")
    assert (item + two + item).pricing_version == "a; b"
    assert (Cost(1) + Cost(1)).pricing_version is None


@given(st.lists(st.decimals(0, 10**6, places=9)))
def test_sums_of_money_are_exact_and_shown_without_exponents(amounts):
    total = Cost.zero()
    for amount in amounts:
        total += Cost(amount)
    assert total.amount == sum(amounts, Decimal(0))
    assert "E" not in str(total)


# Subjects and secrets


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("as it is\n", "as it is\n"),
        (None, ""),
        ("", ""),
        ({"a": [1, "ü"]}, '{"a":[1,"ü"]}'),
        (0, "0"),
        (False, "false"),
    ],
)
def test_a_subject_s_text_is_its_output_as_text(output, text):
    assert Subject("row", "1", output=output).text == text


def test_a_secret_is_not_printed():
    assert "hunter2" not in f"{Secret('hunter2')} {Secret('hunter2')!r}"
    assert Secret("hunter2").value == "hunter2"


def test_a_subjects_columns_are_its_own_values_before_others_of_their_names():
    row = Subject("row", "q1", input="mine", context={"input": "theirs", "output": "column", "hint": None})
    assert columns(row) == {"id": "q1", "input": "mine", "output": "column", "hint": None}


def test_a_records_responses_have_names_and_a_single_one_the_name_of_all():
    item, two = {"content": "1"}, {"content": "2"}
    assert responses({"response": item}) == {ONLY: item}
    assert responses({"response": item, "responses": {"a": item, "b": two}}) == {"a": item, "b": two}
    assert responses({"metrics": {}}) == {}


def test_a_trail_is_the_beginning_of_a_sequence_that_may_grow():
    log = [TraceEvent("a"), TraceEvent("b")]
    trail = Trail(log, 1)
    log.append(TraceEvent("c"))
    assert [event.type for event in trail] == ["a"]
    assert trail == Trail((TraceEvent("a"),), 1) != Trail(log, 2)
    subject = pickle.loads(pickle.dumps(Subject("turn", "1", events=(log[0],), trail=trail)))
    assert subject.trail == trail
    assert len(subject.trail.events) == 1  # what came later does not go along
    assert subject.trail.events[0] is subject.events[0]
