"""How likely it is that the variant's mean score is the higher one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from dicast import Results, Within

from ..numbers.scale import divided, lengths, power_of
from ..numbers.ties import varies
from ..numbers.values import plain
from ..scores.sides import Sides, compared
from ..text.reasons import explained, few
from ..text.sentences import chance_text
from .significance import LEAST_SPREAD, TOO_FAR, pooled_deviation, welch

_KNOWN = ("prob_variant_gt_baseline", "effect_size", "mean_difference", "ci_low", "ci_high", "credible_interval")
_ALIKE = "the scores of each run are all alike: nothing is known of how they vary"


@attrs.frozen
class Bayes:
    """How likely it is, after both runs, that the variant's mean score is above the baseline's, where subjects are not paired.

    With flat priors on both means and on the logarithms of both deviations, the difference of the means has about a t distribution around the
    difference that was seen, with Welch's standard error and degrees of freedom (G. E. P. Box and G. C. Tiao, Bayesian Inference in
    Statistical Analysis, 1973, section 2.5). For each criterion: ``n``, ``n_baseline``, ``n_variant``, ``mean_difference`` (variant less
    baseline), ``prob_variant_gt_baseline``, from 0 to 1; ``credible_interval``, its two ends in the scores' scale, which are ``ci_low`` and
    ``ci_high`` too; ``effect_size`` (Cohen's d), and ``words``. What is not defined is null, and ``reasons`` says why.

    :param credible_interval: how probable the interval is, .5 to .999.
    :param criteria: only these; all by default.
    """

    name = "bayes"

    credible_interval: float = attrs.field(default=0.95, validator=Within(0.5, 0.999, "from 0.5 to 0.999"))
    criteria: tuple[str, ...] = ()

    def compare(self, baseline: Results, variant: Results) -> Mapping[str, object]:
        """The probability for each criterion."""
        return compared(baseline, variant, self.criteria, self._believed)

    def _believed(self, sides: Sides) -> dict[str, Any]:
        before, after = sides.present
        counts = {"n_baseline": len(before), "n_variant": len(after)}
        figures: dict[str, Any] = {"n": sum(counts.values()), **counts, **dict.fromkeys(_KNOWN)}
        power = power_of(before, after)
        before, after = divided(before, power), divided(after, power)
        if reasons := few(2, counts):
            return explained({**figures, "words": "too few scores to tell"}, reasons)
        if not varies(before) and not varies(after):
            return explained(
                {**figures, "words": "not known: the scores of each run are all alike"},
                {"prob_variant_gt_baseline": _ALIKE},
            )
        if pooled_deviation(before, after) < LEAST_SPREAD:
            words = f"not known: {TOO_FAR}"
            return explained({**figures, "words": words}, {"prob_variant_gt_baseline": TOO_FAR})
        test = welch(before, after)
        low, high = test.confidence_interval(self.credible_interval)
        difference = float(after.mean() - before.mean())
        ends, large = lengths({"mean_difference": difference, "ci_low": float(low), "ci_high": float(high)}, power)
        chance = _above(float(test.statistic), float(test.df))
        figures |= ends | {
            "prob_variant_gt_baseline": chance,
            "effect_size": plain(difference / pooled_deviation(before, after)),
        }
        figures["credible_interval"] = [ends["ci_low"], ends["ci_high"]]
        return explained(
            {**figures, "words": f"the variant's mean is higher with a probability of {chance_text(chance)}"}, large
        )


def _above(t: float, df: float) -> float:
    from scipy import stats  # type: ignore[import-untyped]  # no types; 2 s, which starting a run does not spend

    return float(stats.t.cdf(t, df))
