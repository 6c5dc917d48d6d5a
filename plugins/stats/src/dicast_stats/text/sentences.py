"""Texts of figures in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from math import floor, inf, log10
from typing import Any

ALPHA, POWER = 0.05, 0.8
"""Two-sided error rate, and the probability of detecting a real difference."""

WIDEST = 1e15
"""Largest width of an interval in a sentence; a wider one has no meaningful digits."""


def count_subjects(count: int) -> str:
    """Return *count* with the noun: "1 subject", "2 subjects"."""
    return "1 subject" if count == 1 else f"{count:,} subjects"


def chance_text(chance: float) -> str:
    """Return *chance* in percent; never 0 % or 100 %."""
    return "more than 99.9%" if chance >= 0.9995 else "less than 0.1%" if chance < 0.0005 else f"{chance:.1%}"


def answer_of(test: Mapping[str, Any]) -> str:
    """Return the answer of a *test* of two runs: ``better`` or ``worse`` if its adjusted p is below 5 %, else ``cannot tell``."""
    if test["adjusted_p_value"] >= ALPHA:
        return "cannot tell"
    return "better" if test["effect_size"] > 0 else "worse"


def p_text(test: Mapping[str, Any]) -> str:
    """Return the p by which a *test* is decided: the adjusted p if the adjustment has an effect."""
    adjusted = test["adjusted_p_value"]
    return f"{'' if adjusted == test['p_value'] else 'adjusted '}p {p_number(adjusted)}"


def p_number(p_value: float) -> str:
    """Return *p_value* with as many digits as in the tables of ``dicast compare --full``."""
    return f"{p_value:.2g}" if p_value < 0.001 else f"{p_value:.4f}"


def unknown_text(figures: Mapping[str, Any]) -> str:
    """Return a sentence on the reason why *figures* has no test."""
    reasons: Mapping[str, str] = figures.get("reasons", {})
    if any(name.startswith("n_") for name in reasons):
        return "too few scores"
    return f"not known: {next(iter(reasons.values()), 'it is not defined')}"


def interval_text(mean: float, low: float, high: float) -> str:
    """Return *mean* and its 95 % interval as text, with as many digits as the width of the interval needs."""
    places = _decimal_places(high - low)
    return f"{_format_number(mean, places, '+')}, 95 % interval {_format_number(low, places)} to {_format_number(high, places)}"


def _format_number(value: float, places: int, sign: str = "-") -> str:
    """Return *value* with *places* decimal places, or up to three more if they would all be 0; a large value in four digits.

    The value has 12 significant digits, so that the order of a sum does not decide a tie.
    """
    value = float(f"{value:.12g}")
    if abs(value) >= WIDEST:
        return f"{value:{sign}.4g}"
    for digits in range(places, places + 4):
        text = f"{value:{sign}.{digits}f}"
        if float(text):
            return text
    return f"{0.0:{sign}.{places}f}"


def _decimal_places(width: float) -> int:
    """Return the number of decimal places that show two digits of an interval's *width*, from 2 to 6."""
    return min(6, max(2, 1 - floor(log10(width)))) if 0 < width < inf else 2
