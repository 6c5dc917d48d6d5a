"""Sentences on paired comparisons: better, worse, or the number of further pairs needed."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor, isfinite, log10
from statistics import NormalDist
from typing import Any

ALPHA, POWER = 0.05, 0.8
"""Two-sided error rate, and the probability of detecting a real difference."""

WIDEST = 1e15
"""Largest width of an interval in a sentence; a wider one has no meaningful digits."""


def paired_sentence(
    pairs: int,
    mean: float | None,
    low: float | None,
    high: float | None,
    deviation: float | None,
    difference: float | None,
    needed: int = 2,
) -> str:
    """Return a sentence on the *mean* difference of *pairs* pairs with the 95 % interval from *low* to *high*.

    *deviation* is the standard deviation of the differences, 0 if all are equal. *difference* is the smallest difference that matters, None
    if it is not known. With fewer pairs than *needed* the sentence states only that.
    """
    if pairs < needed:
        return f"too few pairs: {pairs:,} of the {needed:,} needed"
    if mean is None or low is None or high is None or not high - low < WIDEST:
        if deviation != 0 or mean is None:
            return f"not known over {pairs:,} pairs: the scores are too large"
        return (
            f"no difference: all {pairs:,} pairs agree" if mean == 0 else f"all {pairs:,} pairs differ by {mean:+.4g}"
        )
    figures = interval_text(mean, low, high)
    if low > 0:
        return f"better: {figures}"
    if high < 0:
        return f"worse: {figures}"
    return f"no evidence either way; {_pairs_text(pairs, deviation, difference)} (now {figures})"


def adjusted_paired_sentence(text: str, test: Mapping[str, Any]) -> str:
    """Return *text*, the sentence on one *test* of several, or "no evidence" if only the adjusted p-value is 5 % or more."""
    verdict, _, figures = text.partition(": ")
    if verdict not in ("better", "worse") or not test["p_value"] < ALPHA <= test["adjusted_p_value"]:
        return text
    return f"no evidence either way; p adjusted for all criteria is {test['adjusted_p_value']:.3g} (now {figures})"


def count_subjects(count: int) -> str:
    """Return *count* with the noun: "1 subject", "2 subjects"."""
    return "1 subject" if count == 1 else f"{count:,} subjects"


def chance_text(chance: float) -> str:
    """Return *chance* in percent; never 0 % or 100 %."""
    return "more than 99.9%" if chance >= 0.9995 else "less than 0.1%" if chance < 0.0005 else f"{chance:.1%}"


def unknown_text(figures: Mapping[str, Any]) -> str:
    """Return a sentence on the reason why *figures* has no test."""
    reasons: Mapping[str, str] = figures.get("reasons", {})
    if any(name.startswith("n_") for name in reasons):
        return "too few scores"
    return f"not known: {next(iter(reasons.values()), 'it is not defined')}"


def interval_text(mean: float, low: float, high: float) -> str:
    """Return *mean* and its 95 % interval as text, with as many digits as the width of the interval needs."""
    places = _decimal_places(high - low)
    return f"{_format_number(mean, places, '+')}, 95 % {_format_number(low, places)} to {_format_number(high, places)}"


def _format_number(value: float, places: int, sign: str = "-") -> str:
    """Return *value* with *places* decimal places, or up to three more if they would all be 0; a large value in four digits."""
    if abs(value) >= WIDEST:
        return f"{value:{sign}.4g}"
    for digits in range(places, places + 4):
        text = f"{value:{sign}.{digits}f}"
        if float(text):
            return text
    return f"{0.0:{sign}.{places}f}"


def _pairs_text(pairs: int, deviation: float | None, difference: float | None) -> str:
    if difference is None:
        return "the smallest difference that matters on a raw scale is not set (--difference)"
    needed = None if deviation is None else pairs_needed(deviation, difference)
    if needed is None:
        return f"the number of pairs that would detect a difference of {difference:g} is not known"
    if needed <= pairs:
        return f"{pairs:,} pairs are enough to detect a difference of {difference:g}"
    return f"about {_round_up(needed - pairs):,} more pairs would detect a difference of {difference:g}"


def pairs_needed(deviation: float, difference: float) -> int | None:
    """Return the number of pairs with which a two-sided paired t-test at 5 % detects *difference* in 80 % of cases.

    ``n = (z1 + z2)² · (deviation / difference)² + z1² / 2`` with z1 of .975 and z2 of .8: W. C. Guenther, Sample size formulas for normal
    theory t tests, The American Statistician 35, 1981, 243-244. The last term accounts for the estimated deviation. None if n is not finite.
    """
    z_alpha, z_power = (NormalDist().inv_cdf(share) for share in (1 - ALPHA / 2, POWER))
    try:
        count = ((z_alpha + z_power) * deviation / difference) ** 2 + z_alpha**2 / 2
    except OverflowError:
        return None
    return max(2, ceil(count)) if isfinite(count) else None


def _round_up(count: int) -> int:
    """Return *count* rounded up to two digits."""
    step = int(10 ** max(0, floor(log10(count)) - 1))
    return -(-count // step) * step


def _decimal_places(width: float) -> int:
    """Return the number of decimal places that show two digits of an interval's *width*, from 2 to 6."""
    return min(6, max(2, 1 - floor(log10(width)))) if width > 0 else 2
