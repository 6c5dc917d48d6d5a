"""Test of the difference of two runs' mean scores, without pairing subjects."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, sqrt
from typing import TYPE_CHECKING, Any

import attrs

from dicast import Results, Within

from ..changes.label_changes import adjust_criteria
from ..numbers.adjustment import SAMPLES, Adjustment, check_adjustment
from ..numbers.scale import common_power, divide_by_power, scale_back
from ..numbers.ties import varies
from ..numbers.values import json_number
from ..scores.sides import Sides, compare_criteria
from ..text.reasons import too_few, with_reasons
from ..text.sentences import WIDEST, answer_of, interval_text, p_text, unknown_text

if TYPE_CHECKING:
    from ..numbers.values import Column


TOO_FAR = "the scores differ too much in size"

LEAST_SPREAD = 1e-140
"""Smallest pooled standard deviation that is reliable, for scores of about 1."""

_TESTED = ("t", "df", "p_value", "adjusted_p_value", "effect_size", "ci_low", "ci_high")


@attrs.frozen
class Significance:
    """Welch's t-test of the mean scores: two-sided, for runs over different subjects.

    If both runs judged the same subjects, ``stats/paired`` detects smaller differences. For each criterion: ``n_baseline``,
    ``n_variant``, ``mean_difference`` (variant minus baseline), ``t``, ``df``, ``p_value``, ``adjusted_p_value``, ``effect_size``
    (Cohen's d: the difference over the pooled standard deviation), and ``ci_low`` and ``ci_high``, the 95 % interval of the
    difference, and ``words``. An undefined figure is null, and ``reasons`` has the cause by the name of the count or test. The interval and
    ``p_value`` are not adjusted for several criteria.

    :param equal_var: Student's t-test with the pooled variance, for runs with equal variances.
    :param adjustment: how ``adjusted_p_value`` accounts for several criteria, without the gate's labels, which are tested alone: ``holm``, ``bonferroni`` (never more powerful than ``holm``),
        ``fdr`` (Benjamini and Hochberg, for screening: it bounds the share of false findings instead of the chance of any), or ``none``,
        which repeats ``p_value``.
    :param family_size: the number of all tests, if there are further tests elsewhere; by default, and at least, the number of criteria. With it the gate's labels are adjusted too.
    :param min_samples: how many scores each run needs, 2 or more.
    :param criteria: only these criteria; all by default.
    """

    name = "significance"

    equal_var: bool = False
    adjustment: Adjustment = attrs.field(default="holm", validator=check_adjustment)
    family_size: int | None = attrs.field(default=None, validator=Within(1, inf, "a number of tests, from 1"))
    min_samples: int = attrs.field(default=2, validator=SAMPLES)
    criteria: tuple[str, ...] = ()

    def compare(self, baseline: Results, variant: Results) -> Mapping[str, object]:
        """Return the test of each criterion."""
        document = compare_criteria(baseline, variant, self.criteria, self._test_criterion)
        adjust_criteria(document["criteria"], (baseline, variant), self.adjustment, self.family_size or 0)
        for figures in document["criteria"].values():
            figures["words"] = _words(figures)
        return document

    def _test_criterion(self, sides: Sides) -> dict[str, Any]:
        before, after = sides.known_scores
        counts = {"n_baseline": len(before), "n_variant": len(after)}
        figures: dict[str, Any] = {**counts, "mean_difference": None, **dict.fromkeys(_TESTED)}
        reasons, unscaled = too_few(self.min_samples, counts), dict[str, float]()
        is_constant, power = not varies(before) and not varies(after), common_power(before, after)
        before, after = divide_by_power(before, power), divide_by_power(after, power)
        if len(before) and len(after):
            unscaled["mean_difference"] = float(after.mean() - before.mean())
        if not reasons and is_constant:
            reasons = {"t": "all scores of each run are equal: there is no variance to compare the difference with"}
        if not reasons and pooled_std(before, after) < LEAST_SPREAD:
            reasons = {"t": TOO_FAR}
        if not reasons:
            test, unscaled["ci_low"], unscaled["ci_high"] = self._test(before, after)
            figures |= test
        scaled, reasons_of_size = scale_back(unscaled, power)
        return with_reasons({**figures, **scaled}, {**reasons, **reasons_of_size})

    def _test(self, before: Column, after: Column) -> tuple[dict[str, float | None], float, float]:
        """Return the figures of the test, and the ends of the interval."""
        test = welch_test(before, after, equal_var=self.equal_var)
        low, high = test.confidence_interval(0.95)
        figures = {
            "t": test.statistic,
            "df": test.df,
            "p_value": test.pvalue,
            "adjusted_p_value": test.pvalue,
            "effect_size": (after.mean() - before.mean()) / pooled_std(before, after),
        }
        return {name: json_number(value) for name, value in figures.items()}, float(low), float(high)


def _words(figures: Mapping[str, Any]) -> str:
    if figures["p_value"] is None:
        return unknown_text(figures)
    ends = figures["mean_difference"], figures["ci_low"], figures["ci_high"]
    text = f"{interval_text(*ends)}, " if None not in ends and ends[2] - ends[1] < WIDEST else ""
    return f"{answer_of(figures)}: {text}{p_text(figures)}"


def welch_test(before: Column, after: Column, *, equal_var: bool = False) -> Any:
    """Return scipy's t-test of *after* against *before*, with its statistic, df, p-value and intervals."""
    from scipy import stats  # type: ignore[import-untyped]  # no types; 2 s, which starting a run does not spend

    return stats.ttest_ind(after, before, equal_var=equal_var)


def pooled_std(*sides: Column) -> float:
    """Return the pooled standard deviation."""
    squares = sum(float(side.var(ddof=1)) * (len(side) - 1) for side in sides)
    return sqrt(squares / sum(len(side) - 1 for side in sides))
