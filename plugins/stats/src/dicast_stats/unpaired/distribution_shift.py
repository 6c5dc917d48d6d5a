"""Whether two runs' scores are distributed alike."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Any

import attrs

from dicast import Results, Within

from ..numbers.adjustment import Adjustment, adjust_all, check_adjustment
from ..numbers.scale import divided, power_of
from ..numbers.values import plain
from ..scores.sides import Sides, compared
from .cliffs_delta import together
from .criteria_effects import effect_of

if TYPE_CHECKING:
    from ..numbers.values import Column

_SHIFT = ("ks_statistic", "ks_p_value", "adjusted_ks_p_value", "js_divergence")


@attrs.frozen
class DistributionShift:
    """Whether two runs' scores are distributed alike, where subjects are not paired.

    For each criterion: ``n``, ``n_baseline``, ``n_variant``, ``mean_difference`` (variant less baseline); ``ks_statistic`` and
    ``ks_p_value`` of the two-sample Kolmogorov-Smirnov test, with ``adjusted_ks_p_value``; ``u`` and ``p_value`` of the Mann-Whitney test, with
    ``adjusted_p_value``; ``effect_size``, Cliff's delta, with ``ci_low`` and ``ci_high`` (95 %, D. Feng and N. Cliff, 2004);
    ``js_divergence``, the Jensen-Shannon divergence (J. Lin, IEEE Transactions on Information Theory 37, 1991, 145-151) of both histograms
    over *bins* equal bins between the least and the greatest score, in bits, from 0 (alike) to 1 (nothing in common); and ``words``. What is not
    defined is null, and ``reasons`` says why.

    :param bins: how many bins the histograms have.
    :param adjustment: how the adjusted p-values account for several criteria: ``holm``, ``fdr``, ``bonferroni`` or ``none``.
    :param min_samples: how many scores each run needs, 2 or more.
    :param criteria: only these; all by default.
    """

    name = "distribution_shift"

    bins: int = attrs.field(default=10, validator=Within(2, 1000, "from 2 to 1000"))
    adjustment: Adjustment = attrs.field(default="holm", validator=check_adjustment)
    min_samples: int = attrs.field(default=2, validator=Within(2, inf, "2 or more"))
    criteria: tuple[str, ...] = ()

    def compare(self, baseline: Results, variant: Results) -> Mapping[str, object]:
        """The figures of each criterion."""
        found = compared(baseline, variant, self.criteria, self._shifted)
        for name in ("p_value", "ks_p_value"):
            adjust_all(found["criteria"].values(), self.adjustment, name=name)
        for one in found["criteria"].values():
            one["words"] = _words(one)
        return found

    def _shifted(self, sides: Sides) -> dict[str, Any]:
        before, after = sides.present
        figures = {**effect_of(before, after, self.min_samples), **dict.fromkeys(_SHIFT)}
        if figures["p_value"] is None:
            return figures
        from scipy import stats  # type: ignore[import-untyped]  # no types; 2 s, which starting a run does not spend

        before, after = together(before, after)
        test = stats.ks_2samp(after, before)
        return {
            **figures,
            "ks_statistic": plain(test.statistic),
            "ks_p_value": plain(test.pvalue),
            "js_divergence": self._divergence(before, after),
        }

    def _divergence(self, before: Column, after: Column) -> float | None:
        import numpy as np
        from scipy.spatial.distance import jensenshannon  # type: ignore[import-untyped]

        power = power_of(before, after)
        before, after = divided(before, power), divided(after, power)
        ends = min(before.min(), after.min()), max(before.max(), after.max())
        if ends[0] == ends[1]:
            return 0.0
        one, other = (np.histogram(side, self.bins, ends)[0] for side in (before, after))
        return plain(jensenshannon(one, other, 2) ** 2)


def _words(one: Mapping[str, Any]) -> str:
    if one["p_value"] is None:
        return "too few scores to tell"
    least = one["adjusted_ks_p_value"]
    found = f"Kolmogorov-Smirnov {one['ks_statistic']:.3f}, adjusted p {least:.3g}; divergence {one['js_divergence']:.3f} bits"
    return (
        f"the scores are distributed differently: {found}" if least < 0.05 else f"no evidence of a shift: {found}"
    )  # 5 %
