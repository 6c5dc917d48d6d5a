"""One sentence on a paired comparison: better, worse, or how many more pairs it would take to know."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor, isfinite, log10
from statistics import NormalDist
from typing import Any

ALPHA, POWER = 0.05, 0.8
"""Two-sided, and how often a difference that is there shows."""

WIDEST = 1e15
"""An interval that is wider has no digits that a sentence could show."""


def sentence(
    pairs: int,
    mean: float | None,
    low: float | None,
    high: float | None,
    deviation: float | None,
    difference: float | None,
    needed: int = 2,
) -> str:
    """What the *mean* difference of so many *pairs* says, with its 95 % interval from *low* to *high*.

    *deviation* is the differences' standard deviation, 0 where all are alike; *difference* is what is large enough to matter, None
    where nothing says it; so many pairs are *needed* to say anything.
    """
    if pairs < needed:
        return f"too few pairs to tell: {pairs:,} of the {needed:,} needed"
    if mean is None or low is None or high is None or not high - low < WIDEST:
        if deviation != 0 or mean is None:
            return f"not known over {pairs:,} pairs: the scores are too large"
        return (
            f"no difference: all {pairs:,} pairs agree" if mean == 0 else f"all {pairs:,} pairs differ by {mean:+.4g}"
        )
    found = interval_text(mean, low, high)
    if low > 0:
        return f"better: {found}"
    if high < 0:
        return f"worse: {found}"
    return f"no evidence either way; {_more(pairs, deviation, difference)} (now {found})"


def adjusted_sentence(said: str, test: Mapping[str, Any]) -> str:
    """What was *said* of one *test* of several; no evidence where its p-value is below 5 % by itself, and not when it is adjusted."""
    verdict, _, found = said.partition(": ")
    if verdict not in ("better", "worse") or not test["p_value"] < ALPHA <= test["adjusted_p_value"]:
        return said
    return f"no evidence either way; p adjusted for all criteria is {test['adjusted_p_value']:.3g} (now {found})"


def subjects(count: int) -> str:
    """So many subjects."""
    return "1 subject" if count == 1 else f"{count:,} subjects"


def chance_text(chance: float) -> str:
    """*chance* in percent; what is not certain is not said to be."""
    return "more than 99.9%" if chance >= 0.9995 else "less than 0.1%" if chance < 0.0005 else f"{chance:.1%}"


def unknown(found: Mapping[str, Any]) -> str:
    """Why there is no test in *found*."""
    reasons: Mapping[str, str] = found.get("reasons", {})
    if any(name.startswith("n_") for name in reasons):
        return "too few scores to tell"
    return f"not known: {next(iter(reasons.values()), 'it is not defined')}"


def interval_text(mean: float, low: float, high: float) -> str:
    """*mean* and its 95 % interval, with as many digits as its width needs."""
    places = _places(high - low)
    return f"{_shown(mean, places, '+')}, 95 % {_shown(low, places)} to {_shown(high, places)}"


def _shown(value: float, places: int, sign: str = "-") -> str:
    """*value* with that many decimal *places*, or a few more where these would all be 0; a large one in four digits."""
    if abs(value) >= WIDEST:
        return f"{value:{sign}.4g}"
    for more in range(places, places + 4):
        text = f"{value:{sign}.{more}f}"
        if float(text):
            return text
    return f"{0.0:{sign}.{places}f}"


def _more(pairs: int, deviation: float | None, difference: float | None) -> str:
    if difference is None:
        return "no difference is named that would matter on a scale of its own (--difference)"
    needed = None if deviation is None else pairs_needed(deviation, difference)
    if needed is None:
        return f"how many pairs would tell a difference of {difference:g} is not known"
    if needed <= pairs:
        return f"{pairs:,} pairs are enough to tell a difference of {difference:g}"
    return f"about {_rounded(needed - pairs):,} more pairs would tell a difference of {difference:g}"


def pairs_needed(deviation: float, difference: float) -> int | None:
    """How many pairs a two-sided paired t-test at 5 % needs to see *difference* in 80 % of cases; None where that is no number.

    ``n = (z1 + z2)² · (deviation / difference)² + z1² / 2`` with z1 of .975 and z2 of .8: W. C. Guenther, Sample size formulas for normal
    theory t tests, The American Statistician 35, 1981, 243-244. The last term is for the deviation being estimated.
    """
    one, two = (NormalDist().inv_cdf(share) for share in (1 - ALPHA / 2, POWER))
    try:
        found = ((one + two) * deviation / difference) ** 2 + one**2 / 2
    except OverflowError:
        return None
    return max(2, ceil(found)) if isfinite(found) else None


def _rounded(count: int) -> int:
    """*count* to two digits, upwards."""
    step = int(10 ** max(0, floor(log10(count)) - 1))
    return -(-count // step) * step


def _places(width: float) -> int:
    """How many decimal places show two digits of an interval's *width*, from 2 to 6."""
    return min(6, max(2, 1 - floor(log10(width)))) if width > 0 else 2
