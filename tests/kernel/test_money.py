"""Amounts of money for a reader: no exponent, and no small amount that is rounded to one digit or to nothing."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast.reading import line_of
from dicast.toolkit.money import amount_text, amounts_text, scaled_digits


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("0", "0"), ("0.00", "0"), (None, "?"), ("0.5", "0.5"), ("1", "1"), ("0.123456", "0.1235"), ("12.34567", "12.35"),
        ("1234.5", "1234.5"), ("0.00017760", "0.000178"), ("0.000045", "0.000045"), ("0.0000123456", "0.0000123"),
        (1.25e-7, "0.000000125"), (2.0, "2.0"), (Decimal("1E+2"), "100"), ("-0.00012345", "-0.000123"),
    ],
)  # fmt: skip
def test_an_amount_keeps_three_digits(amount, text):
    assert amount_text(amount) == text


@given(st.decimals("1e-12", "1e6", allow_nan=False, allow_infinity=False))
def test_no_amount_is_off_by_more_than_half_a_percent(amount):
    text = amount_text(amount)
    assert "E" not in text
    assert abs(Decimal(text) - amount) <= amount * Decimal("0.005")


@given(st.decimals("0", "1e12", places=12) | st.decimals("0", "1e3", places=4))
def test_scaled_digits_are_those_of_the_decimal(amount):
    scaled, digits = scaled_digits(f"{amount:f}", 12)
    assert (scaled, digits) == (amount.scaleb(12), -amount.as_tuple().exponent)


@pytest.mark.parametrize(
    "text", ["", ".", "-1", "+1", "1e3", "1_0", " 1", "1.2.3", "\u0661", "NaN", "1.0000000", "0" * 31, 1, None]
)
def test_other_texts_have_no_scaled_digits(text):
    assert scaled_digits(text, 6) is None


@given(*[st.decimals("0", "1e7", places=14) | st.decimals("0", "1e13", places=3)] * 2)
def test_the_text_of_a_price_has_the_line_of_the_price(usd, msat):
    about = {"subject_id": "1", "subject_kind": "row", "judge": "j", "judge_kind": "llm", "judge_model": "m"}
    verdict = {**about, "rubric_id": "r", "rubric_version": "1", "score": 1, "confidence": 1}
    lines = [
        line_of(
            "eval.completed",
            "2026-03-01T12:00:00Z",
            "R",
            {**verdict, "judge_cost_usd": each[0], "judge_cost_msat": each[1]},
        )
        for each in ((usd, msat), (f"{usd:f}", f"{msat:f}"))
    ]
    assert lines[0] == lines[1]


def test_amounts_have_all_their_digits_and_their_units():
    assert amounts_text({"usd": "0.00017760", "msat": "0"}) == "0.00017760 usd"
    assert amounts_text({"usd": None, "msat": "5"}) == "unknown usd, 5 msat"
    assert amounts_text({"usd": "0", "msat": "0"}) == ""
