"""Probability that the variant's mean score is higher."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from dicast import Results, Within

from ..numbers.scale import common_power, divide_by_power, scale_back
from ..numbers.ties import varies
from ..numbers.values import json_number
from ..scores.sides import Sides, compare_criteria
from ..text.reasons import too_few, with_reasons
from ..text.sentences import chance_text
from .significance import LEAST_SPREAD, TOO_FAR, pooled_std, welch_test

_FIGURES = ("prob_variant_gt_baseline", "effect_size", "mean_difference", "ci_low", "ci_high", "credible_interval")
_ALIKE = "all scores of each run are equal: their variance is not known"


@attrs.frozen
class Bayes:
    """Posterior probability that the variant's mean score is above the baseline's, for runs over different subjects.

    The priors of both means and of the logarithms of both deviations are flat. The difference of the means then has approximately a t
    distribution around the observed difference, with Welch's standard error and degrees of freedom (G. E. P. Box and G. C. Tiao, Bayesian
    Inference in Statistical Analysis, 1973, section 2.5). For each criterion: ``n``, ``n_baseline``, ``n_variant``, ``mean_difference``
    (variant minus baseline), ``prob_variant_gt_baseline``, from 0 to 1; ``credible_interval``, its two ends in the scores' scale, also as
    ``ci_low`` and ``ci_high``; ``effect_size`` (Cohen's d), and ``words``. An undefined figure is null, and ``reasons`` has the cause.

    :param credible_interval: the probability of the interval, .5 to .999.
    :param criteria: only these criteria; all by default.
    """

    name = "bayes"

    credible_interval: float = attrs.field(default=0.95, validator=Within(0.5, 0.999, "from 0.5 to 0.999"))
    criteria: tuple[str, ...] = ()

    def compare(self, baseline: Results, variant: Results) -> Mapping[str, object]:
        """Return the probability for each criterion."""
        return compare_criteria(baseline, variant, self.criteria, self._posterior)

    def _posterior(self, sides: Sides) -> dict[str, Any]:
        before, after = sides.known_scores
        counts = {"n_baseline": len(before), "n_variant": len(after)}
        figures: dict[str, Any] = {"n": sum(counts.values()), **counts, **dict.fromkeys(_FIGURES)}
        power = common_power(before, after)
        before, after = divide_by_power(before, power), divide_by_power(after, power)
        if reasons := too_few(2, counts):
            return with_reasons({**figures, "words": "too few scores"}, reasons)
        if not varies(before) and not varies(after):
            return with_reasons(
                {**figures, "words": "not known: all scores of each run are equal"},
                {"prob_variant_gt_baseline": _ALIKE},
            )
        if pooled_std(before, after) < LEAST_SPREAD:
            words = f"not known: {TOO_FAR}"
            return with_reasons({**figures, "words": words}, {"prob_variant_gt_baseline": TOO_FAR})
        test = welch_test(before, after)
        low, high = test.confidence_interval(self.credible_interval)
        difference = float(after.mean() - before.mean())
        ends, large = scale_back({"mean_difference": difference, "ci_low": float(low), "ci_high": float(high)}, power)
        chance = _probability_above(float(test.statistic), float(test.df))
        figures |= ends | {
            "prob_variant_gt_baseline": chance,
            "effect_size": json_number(difference / pooled_std(before, after)),
        }
        figures["credible_interval"] = [ends["ci_low"], ends["ci_high"]]
        return with_reasons(
            {**figures, "words": f"the mean of B is higher with a probability of {chance_text(chance)}"}, large
        )


def _probability_above(t: float, df: float) -> float:
    from scipy import stats  # type: ignore[import-untyped]  # no types; 2 s, which starting a run does not spend

    return float(stats.t.cdf(t, df))
