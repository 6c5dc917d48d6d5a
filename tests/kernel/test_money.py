"""Amounts of money for a reader: no exponent, and no small amount that is rounded to one digit or to nothing."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast.toolkit.money import amount_text, amounts_text


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


def test_amounts_have_all_their_digits_and_their_units():
    assert amounts_text({"usd": "0.00017760", "msat": "0"}) == "0.00017760 usd"
    assert amounts_text({"usd": None, "msat": "5"}) == "unknown usd, 5 msat"
    assert amounts_text({"usd": "0", "msat": "0"}) == ""
