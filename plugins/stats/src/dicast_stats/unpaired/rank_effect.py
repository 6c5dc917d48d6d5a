"""Difference of two runs' scores in ranks: Cliff's delta with its interval, and the Mann-Whitney test."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from ..numbers.ties import varies
from ..numbers.values import json_number
from .cliffs_delta import cliffs_delta, joint_ranks

if TYPE_CHECKING:
    from ..numbers.values import Column

_Z = NormalDist().inv_cdf(0.975)


def rank_effect(before: Column, after: Column) -> dict[str, float | None]:
    """Return Cliff's delta as ``effect_size`` with ``ci_low`` and ``ci_high``, and the Mann-Whitney ``u`` and ``p_value``.

    Each side needs two scores. The interval is that of D. Feng and N. Cliff (Journal of Modern Applied Statistical Methods 3(2), 2004,
    322-332), from the consistent estimate of the variance; it is within [-1, 1]. The test is two-sided, exact for up to 8 scores without
    ties, else by the normal approximation with corrections for ties and continuity, as in scipy.
    """
    from scipy import stats  # type: ignore[import-untyped]  # no types; 2 s, which starting a run does not spend

    before, after = joint_ranks(before, after)
    delta = cliffs_delta(before, after)
    test = stats.mannwhitneyu(after, before) if any_varies(before, after) else None
    low, high = _interval(delta, before, after)
    return {
        "effect_size": delta,
        "ci_low": low,
        "ci_high": high,
        "u": len(before) * len(after) / 2 if test is None else json_number(test.statistic),
        "p_value": 1.0 if test is None else json_number(test.pvalue),
    }


def any_varies(before: Column, after: Column) -> bool:
    """Return whether the scores of both sides together vary."""
    import numpy as np  # 0.1 s, which starting a run does not spend

    return varies(np.concatenate((before, after)))


def _interval(delta: float, before: Column, after: Column) -> tuple[float | None, float | None]:
    """Return the 95 % interval of *delta*; None and None if all scores of one side are above the other side's: the variance is unknown then."""
    if abs(delta) == 1:
        return None, None
    rows, columns = _dominance(after, before), -_dominance(before, after)
    ours, theirs = len(after), len(before)
    unequal = _count_unequal(before, after)
    squares = (
        ours**-1
        * theirs**-1
        / max(1, ours * theirs - 1)
        * (
            theirs**2 * float(((rows - delta) ** 2).sum())
            + ours**2 * float(((columns - delta) ** 2).sum())
            - (unequal - ours * theirs * delta**2)
        )
    )
    lower_bound = (1 - delta**2) / max(1, ours * theirs - 1)  # the estimate may be negative
    variance = max(squares, lower_bound)
    middle, width = delta - delta**3, _Z * sqrt(variance) * sqrt((1 - delta**2) ** 2 + _Z**2 * variance)
    scale = 1 - delta**2 + _Z**2 * variance
    return max(-1.0, (middle - width) / scale), min(1.0, (middle + width) / scale)


def _dominance(scores: Column, reference: Column) -> Any:
    """Return for each of *scores* the share of *reference* below it minus the share above it."""
    import numpy as np

    ordered = np.sort(reference)
    below, upto = np.searchsorted(ordered, scores, "left"), np.searchsorted(ordered, scores, "right")
    return (below - (len(reference) - upto)) / len(reference)


def _count_unequal(before: Column, after: Column) -> int:
    """Return the number of pairs of a score of each side that are not equal."""
    import numpy as np

    ordered = np.sort(before)
    ties = np.searchsorted(ordered, after, "right") - np.searchsorted(ordered, after, "left")
    return len(before) * len(after) - int(ties.sum())
