"""Cliff's delta: how often the variant's score is higher."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Any

import attrs

from dicast import Results

from ..numbers.ties import merge_ties
from ..scores.sides import Sides, compare_criteria
from ..text.reasons import too_few, with_reasons

if TYPE_CHECKING:
    from ..numbers.values import Column

_SIZES = ((0.147, "negligible"), (0.33, "small"), (0.474, "medium"), (inf, "large"))
"""Upper bounds of the sizes, with their names (J. Romano et al., Florida Association of Institutional Research, 2006)."""


@attrs.frozen
class CliffsDelta:
    """Cliff's delta: how much more often a score of the variant is above a score of the baseline than below it.

    ``delta`` is over all pairs of a score of the variant and a score of the baseline: the share of pairs in which the variant's is higher minus the
    share in which it is lower. It is 1 if every score is higher, 0 if neither run is ahead, -1 if every score is lower (N. Cliff,
    Psychological Bulletin 114(3), 1993). Scores that agree in 12 significant digits are equal. Only the order of scores counts, so delta suits
    grades and scores with outliers. ``interpretation`` is ``negligible`` below .147, ``small`` below .33, ``medium`` below .474, else ``large``;
    ``words`` is a sentence. ``delta`` and ``interpretation`` are null if a run has no scores, and ``reasons`` has the cause.

    :param criteria: only these criteria; all by default.
    """

    name = "cliffs_delta"

    criteria: tuple[str, ...] = ()

    def compare(self, baseline: Results, variant: Results) -> Mapping[str, object]:
        """Return delta by criterion."""
        return compare_criteria(baseline, variant, self.criteria, _measure_delta)


def _measure_delta(sides: Sides) -> dict[str, Any]:
    before, after = sides.known_scores
    counts = {"n_baseline": len(before), "n_variant": len(after)}
    if reasons := too_few(1, counts):
        return with_reasons({"delta": None, "interpretation": None, **counts, "words": "a run has no scores"}, reasons)
    above, below = count_ahead_and_behind(*joint_ranks(before, after))
    count = len(before) * len(after)
    delta = (above - below) / count
    size = next(name for bound, name in _SIZES if abs(delta) < bound)
    words = "B is above A as often as below"
    if delta:
        words = f"B is above A in {above / count:.1%} of combinations, below in {below / count:.1%}: {size}"
    return with_reasons({"delta": delta, "interpretation": size, **counts, "words": words}, {})


def joint_ranks(before: Column, after: Column) -> tuple[Column, Column]:
    """Return both columns, with scores that agree in 12 significant digits made equal."""
    import numpy as np  # 0.1 s, which starting a run does not spend

    both = np.concatenate((before, after))
    first, second = np.split(merge_ties(both, abs(both)), [len(before)])
    return first, second


def cliffs_delta(before: Column, after: Column) -> float:
    """Return the share of pairs in which the score *after* is higher minus the share in which it is lower."""
    above, below = count_ahead_and_behind(before, after)
    return (above - below) / (len(before) * len(after))


def count_ahead_and_behind(before: Column, after: Column) -> tuple[int, int]:
    """Return the number of pairs in which the score *after* is higher, and the number in which it is lower."""
    import numpy as np

    ordered = np.sort(before)
    above = int(np.searchsorted(ordered, after, "left").sum())
    return above, len(before) * len(after) - int(np.searchsorted(ordered, after, "right").sum())
