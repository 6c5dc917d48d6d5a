"""How often the variant's score is the higher one."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Any

import attrs

from dicast import Results

from ..numbers.ties import settled
from ..scores.sides import Sides, compared
from ..text.reasons import explained, few

if TYPE_CHECKING:
    from ..numbers.values import Column

_SIZES = ((0.147, "negligible"), (0.33, "small"), (0.474, "medium"), (inf, "large"))
"""Below which size an effect is called what (J. Romano et al., Florida Association of Institutional Research, 2006)."""


@attrs.frozen
class CliffsDelta:
    """Cliff's delta: how much more often a score of the variant is above one of the baseline than below it.

    Over all pairs of a score of the variant and one of the baseline, the share in which the variant's is higher less the share in
    which it is lower: 1 where every score is higher, 0 where none of both is ahead, -1 where every one is lower (N. Cliff,
    Psychological Bulletin 114(3), 1993). Scores that agree in 12 significant digits are equal. It looks at the order of scores alone, so it suits grades and outliers. ``interpretation``
    is ``negligible`` below .147, ``small`` below .33, ``medium`` below .474, else ``large``; ``words`` says it in a sentence. Both are null where a run has no scores, and ``reasons`` says so.

    :param criteria: only these; all by default.
    """

    name = "cliffs_delta"

    criteria: tuple[str, ...] = ()

    def compare(self, baseline: Results, variant: Results) -> Mapping[str, object]:
        """Delta by criterion."""
        return compared(baseline, variant, self.criteria, _measured)


def _measured(sides: Sides) -> dict[str, Any]:
    before, after = sides.present
    counts = {"n_baseline": len(before), "n_variant": len(after)}
    if reasons := few(1, counts):
        return explained({"delta": None, "interpretation": None, **counts, "words": "a run has no scores"}, reasons)
    above, below = ahead_and_behind(*together(before, after))
    count = len(before) * len(after)
    delta = (above - below) / count
    size = next(name for bound, name in _SIZES if abs(delta) < bound)
    words = "the variant is ahead as often as behind"
    if delta:
        words = f"the variant is ahead in {above / count:.1%} of all pairs and behind in {below / count:.1%}: {size}"
    return explained({"delta": delta, "interpretation": size, **counts, "words": words}, {})


def together(before: Column, after: Column) -> tuple[Column, Column]:
    """Both columns, with equal numbers where scores agree in 12 significant digits."""
    import numpy as np  # 0.1 s, which starting a run does not spend

    both = np.concatenate((before, after))
    one, other = np.split(settled(both, abs(both)), [len(before)])
    return one, other


def cliffs_delta(before: Column, after: Column) -> float:
    """Of all pairs, the share in which the score *after* is the higher one less the share in which it is the lower one."""
    above, below = ahead_and_behind(before, after)
    return (above - below) / (len(before) * len(after))


def ahead_and_behind(before: Column, after: Column) -> tuple[int, int]:
    """In how many of all pairs the score *after* is the higher one, and in how many the lower one."""
    import numpy as np

    ordered = np.sort(before)
    above = int(np.searchsorted(ordered, after, "left").sum())
    return above, len(before) * len(after) - int(np.searchsorted(ordered, after, "right").sum())
