"""Which criteria differ between two runs, by rank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import TYPE_CHECKING, Any

import attrs

from dicast import Results, Within

from ..numbers.adjustment import Adjustment, adjust_all, check_adjustment
from ..numbers.values import plain
from ..scores.sides import compared
from ..text.reasons import explained, few
from .rank_effect import rank_effect

if TYPE_CHECKING:
    from ..numbers.values import Column

_TESTED = ("mean_difference", "effect_size", "ci_low", "ci_high", "u", "p_value", "adjusted_p_value")


@attrs.frozen
class CriteriaEffects:
    """Which criteria differ between two runs, where subjects are not paired: the Mann-Whitney test of each, adjusted for their number.

    For each criterion: ``n``, ``n_baseline``, ``n_variant``; ``mean_difference`` (variant less baseline); ``effect_size``, Cliff's delta,
    with ``ci_low`` and ``ci_high`` (95 %, D. Feng and N. Cliff, 2004); ``u`` and the two-sided ``p_value`` of the Mann-Whitney test, with
    ``adjusted_p_value``; and ``words``. What is not defined is null, and ``reasons`` says why.

    :param adjustment: how ``adjusted_p_value`` accounts for several criteria: ``holm``, ``fdr`` (Benjamini and Hochberg), ``bonferroni`` or ``none``.
    :param min_samples: how many scores each run needs, 2 or more.
    :param criteria: only these; all by default.
    """

    name = "criteria_effects"

    adjustment: Adjustment = attrs.field(default="holm", validator=check_adjustment)
    min_samples: int = attrs.field(default=2, validator=Within(2, inf, "2 or more"))
    criteria: tuple[str, ...] = ()

    def compare(self, baseline: Results, variant: Results) -> Mapping[str, object]:
        """The test of each criterion."""
        found = compared(baseline, variant, self.criteria, lambda sides: effect_of(*sides.present, self.min_samples))
        adjust(found["criteria"].values(), self.adjustment)
        return found


def effect_of(before: Column, after: Column, needed: int) -> dict[str, Any]:
    """The figures of two columns of scores; ``adjusted_p_value`` and ``words`` are to be set by :func:`adjust`."""
    counts = {"n_baseline": len(before), "n_variant": len(after)}
    figures: dict[str, Any] = {"n": sum(counts.values()), **counts, **dict.fromkeys(_TESTED)}
    if len(before) and len(after):
        figures["mean_difference"] = plain(after.mean() - before.mean())
    if reasons := few(needed, counts):
        return explained(figures, reasons)
    figures |= rank_effect(before, after)
    apart = {"ci_low": "no score of one run is among those of the other"} if figures["ci_low"] is None else {}
    return explained({**figures, "adjusted_p_value": figures["p_value"]}, apart)


def adjust(effects: Iterable[dict[str, Any]], adjustment: Adjustment) -> None:
    """Set ``adjusted_p_value`` of all *effects*, which are tested together, and say each in ``words``."""
    every = list(effects)
    adjust_all(every, adjustment)
    for one in every:
        one["words"] = _words(one)


def _words(one: Mapping[str, Any]) -> str:
    if one["p_value"] is None:
        return "too few scores to tell"
    direction = "higher" if one["effect_size"] > 0 else "lower"
    if one["adjusted_p_value"] >= 0.05:  # 5 %
        return f"no evidence either way (delta {one['effect_size']:+.3f}, adjusted p {one['adjusted_p_value']:.3g})"
    return f"{direction} (delta {one['effect_size']:+.3f}, adjusted p {one['adjusted_p_value']:.3g})"
