"""Differences of two runs by criterion, in ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import TYPE_CHECKING, Any

import attrs

from dicast import Results, Within

from ..changes.label_changes import adjust_criteria
from ..numbers.adjustment import Adjustment, check_adjustment, set_adjusted_p_values
from ..numbers.values import json_number
from ..scores.sides import compare_criteria
from ..text.reasons import too_few, with_reasons
from ..text.sentences import answer_of, p_text
from .rank_effect import rank_effect

if TYPE_CHECKING:
    from ..numbers.values import Column

_TESTED = ("mean_difference", "effect_size", "ci_low", "ci_high", "u", "p_value", "adjusted_p_value")


@attrs.frozen
class CriteriaEffects:
    """Mann-Whitney test of two runs' scores on each criterion, adjusted for the number of criteria; subjects are not paired.

    For each criterion: ``n``, ``n_baseline``, ``n_variant``; ``mean_difference`` (variant minus baseline); ``effect_size``, Cliff's delta,
    with ``ci_low`` and ``ci_high`` (95 %, D. Feng and N. Cliff, 2004); ``u`` and the two-sided ``p_value`` of the Mann-Whitney test, with
    ``adjusted_p_value``; and ``words``. An undefined figure is null, and ``reasons`` has the cause.

    :param adjustment: how ``adjusted_p_value`` accounts for several criteria, without the gate's labels: ``holm``, ``fdr`` (Benjamini and Hochberg), ``bonferroni`` or ``none``.
    :param min_samples: how many scores each run needs, 2 or more.
    :param criteria: only these criteria; all by default.
    """

    name = "criteria_effects"

    adjustment: Adjustment = attrs.field(default="holm", validator=check_adjustment)
    min_samples: int = attrs.field(default=2, validator=Within(2, inf, "2 or more"))
    criteria: tuple[str, ...] = ()

    def compare(self, baseline: Results, variant: Results) -> Mapping[str, object]:
        """Return the test of each criterion."""
        document = compare_criteria(
            baseline, variant, self.criteria, lambda sides: measure_effect(*sides.known_scores, self.min_samples)
        )
        adjust_criteria(document["criteria"], (baseline, variant), self.adjustment)
        describe_effects(document["criteria"].values())
        return document


def measure_effect(before: Column, after: Column, needed: int) -> dict[str, Any]:
    """Return the figures of two columns of scores; :func:`adjust_effects` sets ``adjusted_p_value`` and ``words``."""
    counts = {"n_baseline": len(before), "n_variant": len(after)}
    figures: dict[str, Any] = {"n": sum(counts.values()), **counts, **dict.fromkeys(_TESTED)}
    if len(before) and len(after):
        figures["mean_difference"] = json_number(after.mean() - before.mean())
    if reasons := too_few(needed, counts):
        return with_reasons(figures, reasons)
    figures |= rank_effect(before, after)
    unknown = {"ci_low": "the scores of the two runs do not overlap"} if figures["ci_low"] is None else {}
    return with_reasons({**figures, "adjusted_p_value": figures["p_value"]}, unknown)


def adjust_effects(effects: Iterable[dict[str, Any]], adjustment: Adjustment) -> None:
    """Set ``adjusted_p_value`` and ``words`` of all *effects*, which form one family of tests."""
    effects_list = list(effects)
    set_adjusted_p_values(effects_list, adjustment)
    describe_effects(effects_list)


def describe_effects(effects: Iterable[dict[str, Any]]) -> None:
    """Set ``words`` of all *effects*, after their p-values were adjusted."""
    for effect in effects:
        effect["words"] = _words(effect)


def _words(effect: Mapping[str, Any]) -> str:
    if effect["p_value"] is None:
        return "too few scores"
    figures = f"delta {effect['effect_size']:+.3f}, {p_text(effect)}"
    return f"{answer_of(effect)}: {figures}"
