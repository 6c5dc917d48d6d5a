"""Whether the same subjects did better in one run than in another."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isnan, sqrt
from typing import TYPE_CHECKING, Any

import attrs

from dicast import Results, Within

from .bootstrap import interval
from .scale import TOO_LARGE, divided, lengths, multiplied, power_of
from .significance import SAMPLES
from .table import Sides, Table, compared, explained, few, pairs
from .ties import differences, varies
from .values import plain, quiet
from .words import sentence

if TYPE_CHECKING:
    from .table import Rows
    from .values import Column

_DIFFERENCES = (
    *("mean_difference", "ci_low", "ci_high", "t", "p_value", "effect_size", "wilcoxon_p", "sign_p"),
    *("bootstrap_ci_low", "bootstrap_ci_high", "bootstrap_method"),
)
_PASSES = ("mcnemar_p", "n_pass_pairs", "passes_gained", "passes_lost", "pass_rate_difference")
_PASS_INTERVAL = ("pass_rate_ci_low", "pass_rate_ci_high")

_ALIKE = "the differences are all alike: there is no variance to compare them with"
_TOO_FEW = "the resamples of so few pairs are too much alike"
_NO_FLAGS = "no subject has a score flag in both runs; the extractor's option threshold makes flags"


@attrs.frozen
class Paired:
    """Tests whether the scores of the same subjects differ: paired t, Wilcoxon, sign test, bootstrap, McNemar for passes.

    Subjects are paired by their kinds and ids; those with a score in one run alone are left out. All tests are two-sided, and intervals are
    95 %; differences are variant less baseline. For each criterion:

    - ``n_pairs``, ``mean_difference``; ``t``, ``p_value``, ``ci_low`` and ``ci_high`` of the paired t-test; ``effect_size``, the mean
      difference over the differences' standard deviation (d_z).
    - ``wilcoxon_p``: the signed-rank test, without pairs that are equal: exact for up to 50 pairs where none are equal and no two
      differ by as much, and for up to 13 in any case; else the normal approximation,
      corrected for ties. Scores, and differences, that agree in 12 significant digits of the scores are equal. ``sign_p``: the exact test of whether as many rise as fall.
    - ``bootstrap_ci_low``, ``bootstrap_ci_high``: the interval of the mean difference by resampling pairs, seeded, so it is the
      same again; ``bootstrap_method`` says how it is made.
    - ``mcnemar_p``: McNemar's exact test of whether as many begin to pass as cease to, over the ``n_pass_pairs`` that have a flag in
      both runs; ``passes_gained``, ``passes_lost``, and ``pass_rate_difference``, their difference over the pairs, with its interval
      ``pass_rate_ci_low`` to ``pass_rate_ci_high`` (R. G. Newcombe, Statistics in Medicine 17, 1998, 2635-2650, method 10).

    - ``words``: a sentence: ``better`` or ``worse`` where the t interval leaves out 0, else how many more pairs would tell *difference*, by
      the power of the paired t-test (.8, at 5 %).

    What is not defined is null, and ``reasons`` says why, by the count that is too small or the test it is about. Where no pair differs the exact tests have a p of 1.
    ``words`` beside ``criteria`` is the sentence on the subjects' scores; where the runs have different criteria, or *criteria* names
    some, on each of them.

    :param min_samples: how many pairs there have to be, 2 or more.
    :param difference: the least difference that matters, in the scores' own scale; more than 0.
    :param criteria: only these; all by default.
    """

    name = "paired"

    min_samples: int = attrs.field(default=2, validator=SAMPLES)
    criteria: tuple[str, ...] = ()
    difference: float = attrs.field(default=0.05, validator=Within(0, inf, "more than 0", open=True))

    def compare(self, baseline: Results, variant: Results) -> Mapping[str, object]:
        """The tests of each criterion, and the sentence."""
        before, after = Table.of(baseline), Table.of(variant)
        ours, theirs = pairs(before, after)
        found = compared(baseline, variant, self.criteria, lambda sides: self._tested(sides, ours, theirs))
        if self.criteria or before.criteria != after.criteria:
            told = (f"{criterion}: {one['words']}" for criterion, one in found["criteria"].items())
            return {**found, "words": ". ".join(told) or "no criterion is in both runs"}
        with quiet():
            column, power = _paired(after.whole[theirs], before.whole[ours])
            ends = lengths(_t_test(column)[1], power)[0] if len(column) >= self.min_samples and varies(column) else {}
            return {**found, "words": self._words(column, power, ends)}

    def _tested(self, sides: Sides, ours: Rows, theirs: Rows) -> dict[str, Any]:
        now, was = sides.variant.scores(sides.criterion)[theirs], sides.baseline.scores(sides.criterion)[ours]
        column, power = _paired(now, was)
        figures, reasons = self._differences(column, power)
        passes, why = self._passes(sides, ours, theirs)
        told = explained({"n_pairs": len(column), **figures, **passes}, {**reasons, **why})
        return {**told, "words": self._words(column, power, figures)}

    def _words(self, column: Column, power: int, ends: Mapping[str, float | None]) -> str:
        """The sentence on the differences in *column*, divided by two to that *power*, with the *ends* of the interval of their mean."""
        mean = multiplied(float(column.mean()), power) if len(column) else None
        spread = multiplied(float(column.std(ddof=1)), power) if varies(column) else 0.0
        low, high = ends.get("ci_low"), ends.get("ci_high")
        return sentence(len(column), mean, low, high, spread, self.difference, self.min_samples)

    def _differences(self, column: Column, power: int) -> tuple[dict[str, Any], dict[str, str]]:
        """The figures of the differences in *column* that were divided by two to that *power*."""
        figures: dict[str, Any] = dict.fromkeys(_DIFFERENCES)
        count = len(column)
        mean = {"mean_difference": float(column.mean())} if count else {}
        found, large = lengths(mean, power)
        figures |= found
        if reasons := few(self.min_samples, {"n_pairs": count}):
            return figures, {**reasons, **large}
        from scipy import stats  # type: ignore[import-untyped]  # no types; 2 s, which starting a run does not spend

        # scipy has no p of pairs that are all equal where they are too many for the exact test.
        figures["wilcoxon_p"] = plain(stats.wilcoxon(column).pvalue) if column.any() else 1.0
        figures["sign_p"] = even(int((column > 0).sum()), int((column < 0).sum()))
        if not varies(column):
            return figures, {"t": _ALIKE, **large}
        (test, ends), (method, resampled) = _t_test(column), interval(column)
        few_alike = any(map(isnan, resampled.values()))
        for one, why in ((ends, TOO_LARGE), (resampled, _TOO_FEW if few_alike else TOO_LARGE)):
            found, unknown = lengths(one, power, why)
            figures, large = {**figures, **found}, {**large, **unknown}
        return {**figures, **test, "bootstrap_method": method}, large

    def _passes(self, sides: Sides, ours: Rows, theirs: Rows) -> tuple[dict[str, Any], dict[str, str]]:
        """McNemar's test, and what it rests on."""
        before, after, criterion = sides.baseline, sides.variant, sides.criterion
        both = before.flagged(criterion)[ours] & after.flagged(criterion)[theirs]
        count = int(both.sum())
        if not count:
            return dict.fromkeys((*_PASSES, *_PASS_INTERVAL)) | {"n_pass_pairs": 0}, {"mcnemar_p": _NO_FLAGS}
        was, now = before.passed(criterion)[ours], after.passed(criterion)[theirs]
        gained, lost = int((both & now & ~was).sum()), int((both & was & ~now).sum())
        counts = {"n_pass_pairs": count, "passes_gained": gained, "passes_lost": lost}
        figures = {**counts, "mcnemar_p": None, "pass_rate_difference": (gained - lost) / count}
        figures |= dict.fromkeys(_PASS_INTERVAL)
        if reasons := few(self.min_samples, {"n_pass_pairs": count}):
            return figures, reasons
        kept = int((both & was & now).sum())
        ends = rate_interval(kept, gained, lost, count)
        return {**figures, "mcnemar_p": even(gained, lost), **dict(zip(_PASS_INTERVAL, ends, strict=True))}, {}


def _paired(now: Column, was: Column) -> tuple[Column, int]:
    """The differences of the pairs that have both scores, divided by two to the power that is returned."""
    import numpy as np  # 0.1 s, which starting a run does not spend

    both, power = ~(np.isnan(now) | np.isnan(was)), 0
    now, was = now[both], was[both]
    if np.isinf(now - was).any():  # of scores that are finite
        now, was, power = now / 2, was / 2, 1
    found = differences(now, was)
    more = power_of(found)
    return divided(found, more), power + more


def _t_test(differences: Column) -> tuple[dict[str, float | None], dict[str, float]]:
    """The test's figures, and the ends of the interval."""
    from scipy import stats

    test = stats.ttest_1samp(differences, 0.0)
    low, high = test.confidence_interval(0.95)
    effect = differences.mean() / differences.std(ddof=1)
    figures = {"t": test.statistic, "p_value": test.pvalue, "effect_size": effect}
    ends = {"ci_low": float(low), "ci_high": float(high)}
    return {name: plain(value) for name, value in figures.items()}, ends


def rate_interval(kept: int, gained: int, lost: int, count: int) -> tuple[float, float]:
    """The 95 % interval of the difference of two pass rates over the same *count* subjects, of which *kept* pass both times.

    Newcombe's method 10: the limits of Wilson's intervals of each rate, put together by squares with the correlation phi, which is
    corrected for continuity.
    """
    from scipy import stats

    failed = count - kept - gained - lost
    sides = (kept + gained, kept + lost)
    phi = float(kept * failed - gained * lost)
    if phi > 0:
        phi = max(phi - count / 2, 0.0)
    margins = sides[0] * (count - sides[0]) * sides[1] * (count - sides[1])
    phi = phi / sqrt(margins) if margins else 0.0
    now, was = (stats.binomtest(side, count).proportion_ci(method="wilson") for side in sides)
    (rate, before), difference = (side / count for side in sides), (gained - lost) / count

    def reach(ours: float, theirs: float) -> float:
        return sqrt(ours**2 - 2 * phi * ours * theirs + theirs**2)

    low = difference - reach(rate - now.low, was.high - before)
    return low, difference + reach(now.high - rate, before - was.low)


def even(rises: int, falls: int) -> float | None:
    """The exact p of *rises* and *falls* where both are equally likely; 1 where there is neither."""
    from scipy import stats

    return plain(stats.binomtest(rises, rises + falls).pvalue) if rises + falls else 1.0
