from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dicast import ConfigError, Failure, Score, Subject
from dicast_diff import Numeric

finite = st.floats(allow_nan=False, allow_infinity=False)
normal = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False)
tolerances = st.floats(0, 1e300, allow_nan=False, allow_infinity=False)


def judged(output, reference, **options):
    return Numeric(**options).score(Subject("row", "q1", output=output, reference=reference))


@pytest.mark.parametrize(
    ("output", "reference", "options", "value"),
    [
        (42, 42.0, {}, 1.0),
        (1.0000000001, 1, {}, 1.0),
        (1.001, 1, {}, 0.0),
        (1.001, 1, {"rel_tol": 0.01}, 1.0),
        (1.25, 1, {"abs_tol": 0.25}, 1.0),
        (1.26, 1, {"abs_tol": 0.25}, 0.0),
        (0.1 + 0.2, 0.3, {"rel_tol": 0.0}, 0.0),
        (-1, 1, {}, 0.0),
        (0, 1e-12, {}, 0.0),
    ],
)
def test_numbers_are_close_as_math_isclose_says(output, reference, options, value):
    assert judged(output, reference, **options).value == value


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (" 42\n", 42), ("-1,234.5", -1234.5), ("1,234,567", 1234567), ("+.5", 0.5), ("5.", 5), ("1e3", 1000), ("2.5E-1", 0.25),
        ("\N{MINUS SIGN}7", -7),
    ],
)  # fmt: skip
def test_a_text_that_is_a_number_counts_as_one(text, number):
    assert judged(text, number).value == 1.0
    assert judged(number, text).value == 1.0


NO_NUMBERS = [
    "", " ", ".", "-", "e5", "42 kg", "the answer is 42", "1,23", "12,34,567", "1_000", "0x10", "nan", "NaN", "inf", "-Infinity", "1e999",
    "1" * 2000, "9" * 500, "\u0664\u0662", "\ud800", True, False, [[42]], {"a": 42}, math.nan, math.inf, 10**400, b"42",
]  # fmt: skip


@pytest.mark.parametrize(
    "value", NO_NUMBERS, ids=lambda value: repr(value)[:12] if not isinstance(value, int) else None
)
def test_what_is_no_number_scores_0_and_as_a_reference_fails(value):
    score = judged(value, 42)
    assert score.value == 0.0
    assert score.details.startswith("no number but ")
    assert len(score.details) < 120
    assert score.signals["is_number"] is False
    failure = judged(42, [value])  # the only one of a list, which is blank or no number
    assert isinstance(failure, Failure)
    assert failure.kind == "missing_input"
    assert ("the reference of 'q1'" in failure.message) == (value not in ("", " "))


def test_nan_never_passes():
    assert judged("NaN", 1, abs_tol=1e308).value == 0.0
    assert judged(math.nan, 1, abs_tol=1e308).value == 0.0


def test_the_details_say_both_numbers_and_how_far_apart_they_are():
    score = judged("1,250", 1000)
    assert score.details == "1250, not 1000, 250 away"
    assert score.signals == {"is_number": True, "number": 1250.0, "reference": 1000.0, "close": False}


@pytest.mark.parametrize("field", ["totals.0", "/totals/0"])
def test_a_field_is_compared_alone(field):
    assert judged({"totals": ["7"]}, 7, field=field).value == 1.0
    assert "'totals" in judged({}, 7, field="totals.0").details


@pytest.mark.parametrize("options", [{"abs_tol": -1}, {"rel_tol": math.nan}, {"abs_tol": math.inf}])
def test_impossible_tolerances_are_refused(options):
    with pytest.raises(ConfigError, match="a finite number from 0 on"):
        Numeric(**options)


@given(finite, finite, tolerances, tolerances)
@example(2.0**53, -1.0, 2.0**53, 0.0)  # 1 further apart than a double can say
def test_closeness_is_symmetric_and_that_of_math_isclose_but_for_rounding(first, other, abs_tol, rel_tol):
    score = judged(first, other, abs_tol=abs_tol, rel_tol=rel_tol)
    assert score == judged(first, other, abs_tol=abs_tol, rel_tol=rel_tol)
    assert score.value == judged(other, first, abs_tol=abs_tol, rel_tol=rel_tol).value
    a, b, least, share = (Fraction(repr(number)) for number in (first, other, abs_tol, rel_tol))
    distance, allowed = abs(a - b), max(share * max(abs(a), abs(b)), least)
    assert score.value == float(distance <= allowed)
    if abs(distance - allowed) > allowed / 10**9 and 1e-300 < distance < 1e307:  # else doubles round
        assert score.value == float(math.isclose(first, other, abs_tol=abs_tol, rel_tol=rel_tol))


@given(normal, st.sampled_from([repr, "{:.20e}".format, "{:,}".format, "{:+}".format]))
def test_a_number_that_is_written_down_is_the_same_number(number, write):
    assert judged(write(number), number).value == 1.0


@given(st.text())
def test_any_text_gets_a_score(text):
    assert isinstance(judged(text, 1.0), Score)
