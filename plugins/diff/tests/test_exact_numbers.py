"""Numbers of more digits than a double holds: never equal when they differ."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import Score, Subject
from dicast_diff import Json, Match, Numeric

LONG = "12345678901234567890901", "12345678901234567890902"


def value(metric: object, output: object, reference: object) -> float:
    result = metric.score(Subject("row", "r", output=output, reference=reference))
    assert isinstance(result, Score)
    return result.value


@pytest.mark.parametrize(
    "metric", [Match(), Match("exact"), Numeric(), Json(), Json(ignore_order=True), Json(field="a")]
)
@pytest.mark.parametrize("equal", [True, False])
def test_integers_of_more_than_64_bits_are_compared_exactly(metric, equal):
    first, other = LONG[0], LONG[0 if equal else 1]
    inside = getattr(metric, "field", None) is not None
    for reference in (other, int(other)):
        assert value(metric, f'{{"a": {first}}}' if inside else first, reference) == float(equal)
    if isinstance(metric, Json) and not inside:
        assert value(metric, f'{{"a": [{first}, 1]}}', f'{{"a": [{other}, 1]}}') == float(equal)


def test_texts_of_more_digits_than_a_double_holds_are_different_numbers():
    strict = Numeric(rel_tol=0)
    assert value(strict, "0.1000000000000000001", "0.1") == 0.0
    assert value(strict, "0.10000000000000000010", "0.1000000000000000001") == 1.0
    assert value(strict, "0.1", 0.1) == 1.0
    assert value(Numeric(), "0.1000000000000000001", "0.1") == 1.0  # within the tolerance


def test_two_integers_are_close_only_within_a_tolerance_that_is_given():
    assert value(Numeric(), "1000000000001", 1000000000002) == 0.0
    assert value(Numeric(), "1000000000001", 1000000000002.0) == 1.0
    assert value(Numeric(rel_tol=1e-9), "1000000000001", 1000000000002) == 1.0
    assert value(Numeric(abs_tol=1), "1000000000001", 1000000000002) == 1.0


def test_a_number_too_small_for_a_double_is_none():
    assert value(Numeric(), "1e-900", 0) == value(Numeric(), "1e-999999999999", 0) == 0.0
    assert value(Numeric(), "0e-900", 0) == 1.0


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_are_close_as_math_isclose_has_it(first, other):
    assert value(Numeric(), first, other) == float(math.isclose(first, other))


@given(st.integers(-(10**40), 10**40), st.integers(-(10**40), 10**40))
def test_integers_are_equal_or_not(first, other):
    for metric in (Match(), Match("exact"), Numeric(), Json()):
        assert value(metric, str(first), other) == float(first == other) or metric == Match()
        assert value(metric, str(first), first) == 1.0
