"""Whether a difference of two runs' mean scores is more than chance, where subjects are not paired."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, sqrt
from typing import TYPE_CHECKING, Any

import attrs

from dicast import Results, Within

from ..numbers.adjustment import SAMPLES, Adjustment, adjust_all, check_adjustment
from ..numbers.scale import divided, lengths, power_of
from ..numbers.ties import varies
from ..numbers.values import plain
from ..scores.sides import Sides, compared
from ..text.reasons import explained, few
from ..text.sentences import WIDEST, interval_text, unknown

if TYPE_CHECKING:
    from ..numbers.values import Column


TOO_FAR = "the scores differ too much in size"

LEAST_SPREAD = 1e-140
"""A pooled standard deviation below this, of scores of about 1, is not known."""

_TESTED = ("t", "df", "p_value", "adjusted_p_value", "effect_size", "ci_low", "ci_high")


@attrs.frozen
class Significance:
    """Tests whether the mean scores differ, by Welch's t-test: two-sided, for runs over different subjects.

    Where the same subjects were judged in both runs, ``stats/paired`` sees smaller differences. For each criterion: ``n_baseline``,
    ``n_variant``, ``mean_difference`` (variant less baseline), ``t``, ``df``, ``p_value``, ``adjusted_p_value``, ``effect_size``
    (Cohen's d: the difference over the pooled standard deviation), and ``ci_low`` and ``ci_high``, the 95 % interval of the
    difference, and ``words``. What is not defined is null, and ``reasons`` says why, by the count that is too small or the test it is about. The interval and ``p_value`` are those of one test alone.

    :param equal_var: Student's t-test with the pooled variance, for runs whose scores vary alike.
    :param adjustment: how ``adjusted_p_value`` accounts for several criteria: ``holm``, ``bonferroni`` (like it, and never more
        powerful), ``fdr`` (Benjamini and Hochberg, for screening: a share of false findings instead of any at all), or ``none``, which repeats
        ``p_value``.
    :param family_size: how many tests there are in all, where others are made elsewhere; as many as criteria by default, and
        never fewer.
    :param min_samples: how many scores each run needs, 2 or more.
    :param criteria: only these; all by default.
    """

    name = "significance"

    equal_var: bool = False
    adjustment: Adjustment = attrs.field(default="holm", validator=check_adjustment)
    family_size: int | None = attrs.field(default=None, validator=Within(1, inf, "a number of tests, from 1"))
    min_samples: int = attrs.field(default=2, validator=SAMPLES)
    criteria: tuple[str, ...] = ()

    def compare(self, baseline: Results, variant: Results) -> Mapping[str, object]:
        """The test of each criterion."""
        found = compared(baseline, variant, self.criteria, self._tested)
        adjust_all(found["criteria"].values(), self.adjustment, self.family_size or 0)
        for one in found["criteria"].values():
            one["words"] = _words(one)
        return found

    def _tested(self, sides: Sides) -> dict[str, Any]:
        before, after = sides.present
        counts = {"n_baseline": len(before), "n_variant": len(after)}
        figures: dict[str, Any] = {**counts, "mean_difference": None, **dict.fromkeys(_TESTED)}
        reasons, long = few(self.min_samples, counts), dict[str, float]()
        alike, power = not varies(before) and not varies(after), power_of(before, after)
        before, after = divided(before, power), divided(after, power)
        if len(before) and len(after):
            long["mean_difference"] = float(after.mean() - before.mean())
        if not reasons and alike:
            reasons = {"t": "the scores of each run are all alike: there is no variance to compare the difference with"}
        if not reasons and pooled_deviation(before, after) < LEAST_SPREAD:
            reasons = {"t": TOO_FAR}
        if not reasons:
            test, long["ci_low"], long["ci_high"] = self._test(before, after)
            figures |= test
        found, large = lengths(long, power)
        return explained({**figures, **found}, {**reasons, **large})

    def _test(self, before: Column, after: Column) -> tuple[dict[str, float | None], float, float]:
        """The test's figures, and the ends of the interval."""
        test = welch(before, after, equal_var=self.equal_var)
        low, high = test.confidence_interval(0.95)
        figures = {
            "t": test.statistic,
            "df": test.df,
            "p_value": test.pvalue,
            "adjusted_p_value": test.pvalue,
            "effect_size": (after.mean() - before.mean()) / pooled_deviation(before, after),
        }
        return {name: plain(value) for name, value in figures.items()}, float(low), float(high)


def _words(one: Mapping[str, Any]) -> str:
    if one["p_value"] is None:
        return unknown(one)
    ends = one["mean_difference"], one["ci_low"], one["ci_high"]
    found = f"{interval_text(*ends)}, " if None not in ends and ends[2] - ends[1] < WIDEST else ""
    found += f"p {one['adjusted_p_value']:.3g}"
    if one["adjusted_p_value"] >= 0.05:  # 5 %
        return f"no evidence either way ({found})"
    return f"{'higher' if one['effect_size'] > 0 else 'lower'} ({found})"


def welch(before: Column, after: Column, *, equal_var: bool = False) -> Any:
    """Scipy's t-test of *after* against *before*, with its statistic, df, p-value and intervals."""
    from scipy import stats  # type: ignore[import-untyped]  # no types; 2 s, which starting a run does not spend

    return stats.ttest_ind(after, before, equal_var=equal_var)


def pooled_deviation(*sides: Column) -> float:
    """The pooled standard deviation."""
    squares = sum(float(side.var(ddof=1)) * (len(side) - 1) for side in sides)
    return sqrt(squares / sum(len(side) - 1 for side in sides))
