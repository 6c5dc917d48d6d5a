"""Tests of the assumptions of a t-test."""

from __future__ import annotations

from collections.abc import Mapping
from math import frexp, inf, sqrt
from typing import TYPE_CHECKING, Any

import attrs

from dicast import Results, Within

from ..numbers.adjustment import Adjustment, check_adjustment, set_adjusted_p_values
from ..numbers.scale import common_power, divide_by_power, rescale
from ..numbers.ties import varies
from ..numbers.values import json_number
from ..scores.sides import Sides, compare_criteria
from ..text.reasons import too_few, with_reasons
from ..text.sentences import unknown_text
from .significance import TOO_FAR

if TYPE_CHECKING:
    from ..numbers.values import Column

_MOST = 5_000
"""Largest number of scores for which scipy's p-value of the Shapiro-Wilk test is accurate."""

_UNTESTED: Mapping[str, None] = dict.fromkeys(("statistic", "p_value", "adjusted_p_value"))

_ALIKE = "in each run all scores have the same distance from the median"


@attrs.frozen
class Assumptions:
    """Tests of the assumptions of a t-test: normal scores in each run, and equal variances.

    For each criterion ``n``, and:

    - ``baseline`` and ``variant``: ``n``, and of the Shapiro-Wilk test (Biometrika 52, 1965, 591-611) ``statistic``, ``p_value``,
      ``adjusted_p_value`` and ``is_normal``, false if the adjusted p-value is below *alpha*;
    - ``variance``: of Levene's test around the medians (M. B. Brown and A. B. Forsythe, JASA 69, 1974, 364-367) ``statistic``, ``p_value``,
      ``adjusted_p_value`` and ``equal_variance``;
    - ``effect_size``: the variant's standard deviation over the baseline's, with ``ci_low`` and ``ci_high``, 95 % by the F distribution, which
      assumes normal scores;
    - ``words``.

    A large p-value is no evidence that scores are normal; it is only the lack of evidence against it. An undefined figure is null, and
    ``reasons`` has the cause.

    :param min_samples: how many scores each run needs, 3 or more.
    :param alpha: an assumption counts as violated if its adjusted p-value is below this.
    :param adjustment: how each test's ``adjusted_p_value`` accounts for several criteria: ``holm``, ``fdr``, ``bonferroni`` or ``none``.
    :param criteria: only these criteria; all by default.
    """

    name = "assumptions"

    min_samples: int = attrs.field(default=3, validator=Within(3, inf, "3 or more (the test needs three scores)"))
    alpha: float = attrs.field(default=0.05, validator=Within(0, 1, "between 0 and 1", open=True))
    adjustment: Adjustment = attrs.field(default="holm", validator=check_adjustment)
    criteria: tuple[str, ...] = ()

    def compare(self, baseline: Results, variant: Results) -> Mapping[str, object]:
        """Return the tests of each criterion."""
        document = compare_criteria(baseline, variant, self.criteria, self._test_criterion)
        criteria = document["criteria"].values()
        for part, holds in (("baseline", "is_normal"), ("variant", "is_normal"), ("variance", "equal_variance")):
            set_adjusted_p_values([figures[part] for figures in criteria], self.adjustment)
            for test in (figures[part] for figures in criteria if figures[part]["p_value"] is not None):
                test[holds] = test["adjusted_p_value"] >= self.alpha
        for figures in criteria:
            figures["words"] = self._words(figures)
        return document

    def _test_criterion(self, sides: Sides) -> dict[str, Any]:
        before, after = _rescaled_scores(sides)
        counts = {"n_baseline": len(before), "n_variant": len(after)}
        reasons = too_few(self.min_samples, counts)
        normal = {
            name: self._normality(side)
            for name, side in (
                ("baseline", rescale(sides.known_scores[0])),
                ("variant", rescale(sides.known_scores[1])),
            )
        }
        variance: dict[str, Any] = {**_UNTESTED, "equal_variance": None}
        ratio = dict.fromkeys(("effect_size", "ci_low", "ci_high"))
        if not reasons and not (varies(before) and varies(after)):
            reasons = {"effect_size": "all scores of a run are equal"}
        if not reasons and not (before.var() and after.var()):
            reasons = {"effect_size": TOO_FAR}
        if not reasons:
            from scipy import stats  # type: ignore[import-untyped]  # no types; 2 s, which starting a run does not spend

            test = stats.levene(before, after, center="median")
            variance |= {"statistic": json_number(test.statistic), "p_value": json_number(test.pvalue)}
            if variance["statistic"] is None:  # all deviations from the medians are equal
                variance["reason"] = _ALIKE
            ratio = _deviation_ratio(before, after)
        return with_reasons({"n": sum(counts.values()), **normal, "variance": variance, **ratio}, reasons)

    def _normality(self, scores: Column) -> dict[str, Any]:
        figures: dict[str, Any] = {"n": len(scores), **_UNTESTED, "is_normal": None}
        if len(scores) < self.min_samples:
            return {**figures, "reason": f"{len(scores)} of the {self.min_samples} needed"}
        if not varies(scores) or len(scores) > _MOST:
            reason = (
                f"more than {_MOST:,} scores: the p-value would not be accurate"
                if varies(scores)
                else "all scores are equal"
            )
            return {**figures, "reason": reason}
        from scipy import stats

        spread = frexp(float(scores.max() - scores.min()))[1]
        test = stats.shapiro(divide_by_power(scores, spread))  # it treats a range below 1e-19 as 0
        return {**figures, "statistic": json_number(test.statistic), "p_value": json_number(test.pvalue)}

    def _words(self, figures: Mapping[str, Any]) -> str:
        normal, variance = {name: figures[name] for name in ("baseline", "variant")}, figures["variance"]
        broken = [
            f"the {name}'s scores are not normal" for name, figures in normal.items() if figures["is_normal"] is False
        ]
        if variance["equal_variance"] is False:
            broken.append("the variances differ")
        if broken:
            return f"{'; '.join(broken)} (at {self.alpha:g})"
        if variance["equal_variance"] is None:
            return unknown_text({"reasons": figures.get("reasons") or {"variance": _ALIKE}})
        if any(side["is_normal"] is None for side in normal.values()):
            return f"no evidence against equal variances (at {self.alpha:g}); normality is not tested for more than {_MOST:,} scores"
        return f"no evidence against a t-test (at {self.alpha:g})"


def _rescaled_scores(sides: Sides) -> tuple[Column, Column]:
    """Return the scores of both runs, divided by one power of two so that their squares are finite."""
    before, after = sides.known_scores
    power = common_power(before, after)
    return divide_by_power(before, power), divide_by_power(after, power)


def _deviation_ratio(before: Column, after: Column) -> dict[str, float | None]:
    """Return the ratio of the standard deviations with its interval."""
    from scipy import stats

    squares = float(after.var(ddof=1)) / float(before.var(ddof=1))
    freedom = len(after) - 1, len(before) - 1
    low, high = squares / stats.f.ppf(0.975, *freedom), squares / stats.f.ppf(0.025, *freedom)
    return {
        "effect_size": json_number(sqrt(squares)),
        "ci_low": json_number(sqrt(low)),
        "ci_high": json_number(sqrt(high)),
    }
