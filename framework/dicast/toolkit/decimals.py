"""Numbers as texts with few decimals, by the rule of dicast's pages: one number has one text in the terminal and in a browser."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from math import isfinite

SIX = Decimal("0.000001")
"""Numbers are first rounded to six decimals, as in answers of ``dicast serve``: a sum of floats differs from its decimal value in later ones."""

_LONG = Context(prec=400)  # all digits of the largest float, which has 309 before the point


def decimal_text(value: float, places: int) -> str:
    """Return *value* with *places* decimals, at most six. The shortest decimal form of *value* is rounded, halves away from 0.

    A value that is not finite is ``nan``, ``inf`` or ``-inf``.
    """
    return _rounded(Decimal(repr(float(value))), places) if isfinite(value) else f"{value}"


def percent_text(value: float, places: int) -> str:
    """Return *value* in percent, without a sign, with *places* decimals, rounded as in :func:`decimal_text`."""
    return _rounded(Decimal(repr(float(value))), places, 2) if isfinite(value) else f"{value}"


def _rounded(value: Decimal, places: int, shift: int = 0) -> str:
    six = value.quantize(SIX, ROUND_HALF_UP, _LONG).scaleb(shift, _LONG)
    rounded = six.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, _LONG)
    return f"{abs(rounded) if rounded.is_zero() else rounded:f}"
