"""Whether a difference of two runs' mean scores is more than chance, where subjects are not paired."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf, sqrt
from typing import TYPE_CHECKING, Any, Literal, get_args

import attrs

from dicast import ConfigError, Problem, Results, Within, nearest

from .scale import divided, lengths, power_of
from .table import Sides, compared, explained, few
from .ties import varies
from .values import plain
from .words import WIDEST, interval_text, unknown

if TYPE_CHECKING:
    from .values import Column

Adjustment = Literal["none", "bonferroni", "holm", "fdr"]
ADJUSTMENTS: tuple[str, ...] = get_args(Adjustment)

TOO_FAR = "the scores differ too much in size"

LEAST_SPREAD = 1e-140
"""A pooled standard deviation below this, of scores of about 1, is not known."""

_TESTED = ("t", "df", "p_value", "adjusted_p_value", "effect_size", "ci_low", "ci_high")


SAMPLES = Within(2, inf, "2 or more (a variance needs two scores)")


def check_adjustment(_instance: object, _attribute: attrs.Attribute[Adjustment], adjustment: Adjustment) -> None:
    """An attrs validator for the option *adjustment*.

    :raises ConfigError: when it is none of :data:`ADJUSTMENTS`.
    """
    if adjustment not in ADJUSTMENTS:
        message = f"unknown adjustment {adjustment!r}: it is {', '.join(ADJUSTMENTS)}"
        raise ConfigError(Problem(message, value=adjustment, hint=nearest(str(adjustment), ADJUSTMENTS)))


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


def adjusted(p_values: Sequence[float], adjustment: Adjustment, family_size: int = 0) -> list[float]:
    """*p_values* of tests that were made together, in their order.

    Bonferroni's is the number of tests times p; Holm's (Scandinavian Journal of Statistics 6(2), 1979) the largest so far, from the
    least p on, of the number of tests that are left times p; that of the false discovery rate is Y. Benjamini's and Y. Hochberg's
    (Journal of the Royal Statistical Society B 57(1), 1995). Tests elsewhere, up to *family_size*, count as if their p were 1.
    """
    count = max(len(p_values), family_size)
    if adjustment == "bonferroni":
        return [min(1.0, count * p_value) for p_value in p_values]
    if adjustment == "holm":
        return _holm(p_values, count)
    if adjustment == "fdr" and p_values:
        from scipy import stats

        every = [*p_values, *[1.0] * (count - len(p_values))]
        return [float(p_value) for p_value in stats.false_discovery_control(every)[: len(p_values)]]
    return list(p_values)


def adjust_all(
    tests: Iterable[dict[str, Any]], adjustment: Adjustment, family_size: int = 0, name: str = "p_value"
) -> None:
    """Set the adjusted p-value of the *name* of each of *tests*, which were made together; null where that is null."""
    every = list(tests)
    known = iter(adjusted([one[name] for one in every if one[name] is not None], adjustment, family_size))
    for one in every:
        one[f"adjusted_{name}"] = None if one[name] is None else next(known)


def _holm(p_values: Sequence[float], count: int) -> list[float]:
    found, so_far = [0.0] * len(p_values), 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        so_far = max(so_far, min(1.0, (count - place) * p_values[index]))
        found[index] = so_far
    return found
