"""Whether two runs' scores are such as a t-test assumes."""

from __future__ import annotations

from collections.abc import Mapping
from math import frexp, inf, sqrt
from typing import TYPE_CHECKING, Any

import attrs

from dicast import Results, Within

from ..numbers.adjustment import Adjustment, adjust_all, check_adjustment
from ..numbers.scale import divided, fit, power_of
from ..numbers.ties import varies
from ..numbers.values import plain
from ..scores.sides import Sides, compared
from ..text.reasons import explained, few
from ..text.sentences import unknown
from .significance import TOO_FAR

if TYPE_CHECKING:
    from ..numbers.values import Column

_MOST = 5_000
"""Scipy's p-value of the Shapiro-Wilk test is not accurate for more scores."""

_UNTESTED: Mapping[str, None] = dict.fromkeys(("statistic", "p_value", "adjusted_p_value"))

_ALIKE = "in each run all scores are as far from the median"


@attrs.frozen
class Assumptions:
    """Tests what a t-test assumes: that each run's scores are normal, and that both vary alike.

    For each criterion ``n``, and:

    - ``baseline`` and ``variant``: ``n``, and of the Shapiro-Wilk test (Biometrika 52, 1965, 591-611) ``statistic``, ``p_value``,
      ``adjusted_p_value`` and ``is_normal``, false where the adjusted p-value is below *alpha*;
    - ``variance``: of Levene's test around the medians (M. B. Brown and A. B. Forsythe, JASA 69, 1974, 364-367) ``statistic``, ``p_value``,
      ``adjusted_p_value`` and ``equal_variance``;
    - ``effect_size``: the variant's standard deviation over the baseline's, with ``ci_low`` and ``ci_high``, 95 % by the F distribution, which
      assumes normal scores;
    - ``words``.

    A large p-value is no evidence that scores are normal, only none against it. What is not defined is null, and ``reasons`` says why.

    :param min_samples: how many scores each run needs, 3 or more.
    :param alpha: below which adjusted p-value an assumption counts as broken.
    :param adjustment: how each test's ``adjusted_p_value`` accounts for several criteria: ``holm``, ``fdr``, ``bonferroni`` or ``none``.
    :param criteria: only these; all by default.
    """

    name = "assumptions"

    min_samples: int = attrs.field(default=3, validator=Within(3, inf, "3 or more (the test needs three scores)"))
    alpha: float = attrs.field(default=0.05, validator=Within(0, 1, "between 0 and 1", open=True))
    adjustment: Adjustment = attrs.field(default="holm", validator=check_adjustment)
    criteria: tuple[str, ...] = ()

    def compare(self, baseline: Results, variant: Results) -> Mapping[str, object]:
        """The tests of each criterion."""
        found = compared(baseline, variant, self.criteria, self._tested)
        every = found["criteria"].values()
        for part, holds in (("baseline", "is_normal"), ("variant", "is_normal"), ("variance", "equal_variance")):
            adjust_all([one[part] for one in every], self.adjustment)
            for test in (one[part] for one in every if one[part]["p_value"] is not None):
                test[holds] = test["adjusted_p_value"] >= self.alpha
        for one in every:
            one["words"] = self._words(one)
        return found

    def _tested(self, sides: Sides) -> dict[str, Any]:
        before, after = _alike(sides)
        counts = {"n_baseline": len(before), "n_variant": len(after)}
        reasons = few(self.min_samples, counts)
        normal = {
            name: self._normal(side)
            for name, side in (("baseline", fit(sides.present[0])), ("variant", fit(sides.present[1])))
        }
        variance: dict[str, Any] = {**_UNTESTED, "equal_variance": None}
        ratio = dict.fromkeys(("effect_size", "ci_low", "ci_high"))
        if not reasons and not (varies(before) and varies(after)):
            reasons = {"effect_size": "the scores of a run are all alike"}
        if not reasons and not (before.var() and after.var()):
            reasons = {"effect_size": TOO_FAR}
        if not reasons:
            from scipy import stats  # type: ignore[import-untyped]  # no types; 2 s, which starting a run does not spend

            test = stats.levene(before, after, center="median")
            variance |= {"statistic": plain(test.statistic), "p_value": plain(test.pvalue)}
            if variance["statistic"] is None:  # all deviations from the medians are alike
                variance["reason"] = _ALIKE
            ratio = _ratio(before, after)
        return explained({"n": sum(counts.values()), **normal, "variance": variance, **ratio}, reasons)

    def _normal(self, scores: Column) -> dict[str, Any]:
        found: dict[str, Any] = {"n": len(scores), **_UNTESTED, "is_normal": None}
        if len(scores) < self.min_samples:
            return {**found, "reason": f"{len(scores)} of the {self.min_samples} needed"}
        if not varies(scores) or len(scores) > _MOST:
            why = (
                f"more than {_MOST:,} scores: the p-value would not be accurate"
                if varies(scores)
                else "the scores are all alike"
            )
            return {**found, "reason": why}
        from scipy import stats

        spread = frexp(float(scores.max() - scores.min()))[1]
        test = stats.shapiro(divided(scores, spread))  # which takes a range below 1e-19 for none
        return {**found, "statistic": plain(test.statistic), "p_value": plain(test.pvalue)}

    def _words(self, one: Mapping[str, Any]) -> str:
        normal, variance = {name: one[name] for name in ("baseline", "variant")}, one["variance"]
        broken = [f"the {name}'s scores are not normal" for name, one in normal.items() if one["is_normal"] is False]
        if variance["equal_variance"] is False:
            broken.append("the scores do not vary alike")
        if broken:
            return f"{'; '.join(broken)} (at {self.alpha:g})"
        if variance["equal_variance"] is None:
            return unknown({"reasons": one.get("reasons") or {"variance": _ALIKE}})
        if any(side["is_normal"] is None for side in normal.values()):
            return f"nothing speaks against equal variances (at {self.alpha:g}); of more than {_MOST:,} scores it is not tested whether they are normal"
        return f"nothing speaks against a t-test (at {self.alpha:g})"


def _alike(sides: Sides) -> tuple[Column, Column]:
    """Both sides' scores, divided by one power of two so that their squares are numbers."""
    before, after = sides.present
    power = power_of(before, after)
    return divided(before, power), divided(after, power)


def _ratio(before: Column, after: Column) -> dict[str, float | None]:
    """The ratio of the standard deviations, and its interval."""
    from scipy import stats

    squares = float(after.var(ddof=1)) / float(before.var(ddof=1))
    freedom = len(after) - 1, len(before) - 1
    low, high = squares / stats.f.ppf(0.975, *freedom), squares / stats.f.ppf(0.025, *freedom)
    return {"effect_size": plain(sqrt(squares)), "ci_low": plain(sqrt(low)), "ci_high": plain(sqrt(high))}
