"""Comparison of the distributions of two runs' scores."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Any

import attrs

from dicast import Results, Within

from ..changes.label_changes import adjust_criteria
from ..numbers.adjustment import Adjustment, check_adjustment
from ..numbers.scale import common_power, divide_by_power
from ..numbers.values import json_number
from ..scores.sides import Sides, compare_criteria
from ..text.sentences import ALPHA
from .cliffs_delta import joint_ranks
from .criteria_effects import measure_effect

if TYPE_CHECKING:
    from ..numbers.values import Column

_SHIFT = ("ks_statistic", "ks_p_value", "adjusted_ks_p_value", "js_divergence")


@attrs.frozen
class DistributionShift:
    """Tests of whether two runs' scores have the same distribution; subjects are not paired.

    For each criterion: ``n``, ``n_baseline``, ``n_variant``, ``mean_difference`` (variant minus baseline); ``ks_statistic`` and
    ``ks_p_value`` of the two-sample Kolmogorov-Smirnov test, with ``adjusted_ks_p_value``; ``u`` and ``p_value`` of the Mann-Whitney test, with
    ``adjusted_p_value``; ``effect_size``, Cliff's delta, with ``ci_low`` and ``ci_high`` (95 %, D. Feng and N. Cliff, 2004);
    ``js_divergence``, the Jensen-Shannon divergence (J. Lin, IEEE Transactions on Information Theory 37, 1991, 145-151) of both histograms
    over *bins* equal bins between the lowest and the highest score, in bits, from 0 (identical) to 1 (disjoint); and ``words``. An
    undefined figure is null, and ``reasons`` has the cause.

    :param bins: the number of bins of the histograms.
    :param adjustment: how the adjusted p-values account for several criteria, without the gate's labels: ``holm``, ``fdr``, ``bonferroni`` or ``none``.
    :param min_samples: how many scores each run needs, 2 or more.
    :param criteria: only these criteria; all by default.
    """

    name = "distribution_shift"

    bins: int = attrs.field(default=10, validator=Within(2, 1000, "from 2 to 1000"))
    adjustment: Adjustment = attrs.field(default="holm", validator=check_adjustment)
    min_samples: int = attrs.field(default=2, validator=Within(2, inf, "2 or more"))
    criteria: tuple[str, ...] = ()

    def compare(self, baseline: Results, variant: Results) -> Mapping[str, object]:
        """Return the figures of each criterion."""
        document = compare_criteria(baseline, variant, self.criteria, self._shift_figures)
        for name in ("p_value", "ks_p_value"):
            adjust_criteria(document["criteria"], (baseline, variant), self.adjustment, name=name)
        for figures in document["criteria"].values():
            figures["words"] = _words(figures)
        return document

    def _shift_figures(self, sides: Sides) -> dict[str, Any]:
        before, after = sides.known_scores
        figures = {**measure_effect(before, after, self.min_samples), **dict.fromkeys(_SHIFT)}
        if figures["p_value"] is None:
            return figures
        from scipy import stats  # type: ignore[import-untyped]  # no types; 2 s, which starting a run does not spend

        before, after = joint_ranks(before, after)
        test = stats.ks_2samp(after, before)
        return {
            **figures,
            "ks_statistic": json_number(test.statistic),
            "ks_p_value": json_number(test.pvalue),
            "js_divergence": self._divergence(before, after),
        }

    def _divergence(self, before: Column, after: Column) -> float | None:
        import numpy as np
        from scipy.spatial.distance import jensenshannon  # type: ignore[import-untyped]

        power = common_power(before, after)
        before, after = divide_by_power(before, power), divide_by_power(after, power)
        ends = min(before.min(), after.min()), max(before.max(), after.max())
        if ends[0] == ends[1]:
            return 0.0
        first, second = (np.histogram(side, self.bins, ends)[0] for side in (before, after))
        return json_number(jensenshannon(first, second, 2) ** 2)


def _words(figures: Mapping[str, Any]) -> str:
    if figures["p_value"] is None:
        return "too few scores"
    p_value = figures["adjusted_ks_p_value"]
    text = f"Kolmogorov-Smirnov {figures['ks_statistic']:.3f}, adjusted p {p_value:.3g}; divergence {figures['js_divergence']:.3f} bits"
    return f"the scores are distributed differently: {text}" if p_value < ALPHA else f"no evidence of a shift: {text}"
