"""Amounts of money: rounding, and text for readers and for documents."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_HALF_EVEN, Decimal

UNKNOWN = "?"
_PLACES, _DIGITS = 4, 3
_LONGEST = 30
"""Most characters of an amount that :func:`scaled_digits` reads."""


def rounded(amount: Decimal, places: int, rounding: str = ROUND_HALF_EVEN) -> Decimal:
    """Return *amount* with *places* decimal places, rounded half to even by default."""
    return amount.quantize(Decimal(1).scaleb(-places), rounding=rounding)


def scaled_digits(text: object, places: int) -> tuple[int, int] | None:
    """Return the amount in *text* times 10 to the power *places*, and its number of decimals, in a third of the time of a Decimal.

    Return None for a text that is not only digits with up to *places* decimals, and for other values.

    >>> scaled_digits("0.250", 6), scaled_digits("1E2", 6), scaled_digits("0.125", 2)
    ((250000, 3), None, None)
    """
    if type(text) is not str or len(text) > _LONGEST or not text.isascii():
        return None
    whole, _, fraction = text.partition(".")
    digits, decimals = whole + fraction, len(fraction)
    if decimals > places or not digits.isdigit():
        return None
    return int(digits) * 10 ** (places - decimals), decimals


def plain_text(amount: Decimal, places: int | None = None) -> str:
    """Return *amount* without an exponent and trailing zeros; with *places*, rounded half to even first.

    >>> plain_text(Decimal("0.1250")), plain_text(Decimal("1E+2")), plain_text(Decimal("0.00049"), 3)
    ('0.125', '100', '0')
    """
    return format((amount if places is None else rounded(amount, places)).normalize(), "f")


def amount_text(amount: Decimal | str | float | None) -> str:
    """Return *amount* with up to 4 decimal places, a small one with 3 significant digits, without an exponent; ``?`` if it is unknown.

    >>> [amount_text(amount) for amount in ("0.5", "12.34567", "0.00001234", "0", None)]
    ['0.5', '12.35', '0.0000123', '0', '?']
    """
    if amount is None:
        return UNKNOWN
    value = Decimal(repr(amount) if isinstance(amount, float) else amount)
    if value == 0:
        return "0"
    places = 2 if abs(value) >= 10 else max(_PLACES, _DIGITS - 1 - value.adjusted())
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and -exponent > places:
        value = round(value, places)
    return f"{value:f}"


def amounts_text(amounts: Mapping[str, str | None], units: tuple[str, ...] = ("usd", "msat")) -> str:
    """Return amounts by unit with all their digits, without amounts of 0; empty if all are 0."""
    return ", ".join(
        f"{'unknown' if value is None else value} {unit}"
        for unit, value in amounts.items()
        if unit in units and value != "0"
    )
