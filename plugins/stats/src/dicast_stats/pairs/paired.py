"""Whether the same subjects did better in one run than in another."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import inf, isnan
from typing import TYPE_CHECKING, Any

import attrs

from dicast import ConfigError, DataError, InputPath, Problem, Results, Within
from dicast.reporting import PairedPasses, pair_passes

from ..numbers.adjustment import SAMPLES, Adjustment, adjust_all, check_adjustment
from ..numbers.bootstrap import interval
from ..numbers.scale import TOO_LARGE, divided, lengths, multiplied, power_of
from ..numbers.ties import differences, varies
from ..numbers.values import plain, quiet
from ..scores.sides import Sides, compared
from ..scores.table import Table, pairs
from ..text.reasons import explained, few
from ..text.sentences import adjusted_sentence, sentence
from .corrected import Labels, corrected, corrected_words, read_labels
from .pass_changes import even, rate_interval

if TYPE_CHECKING:
    from ..numbers.values import Column
    from ..scores.table import Rows

_DIFFERENCES = (
    *(
        "mean_difference",
        "ci_low",
        "ci_high",
        "t",
        "p_value",
        "adjusted_p_value",
        "effect_size",
        "wilcoxon_p",
        "sign_p",
    ),
    *("bootstrap_ci_low", "bootstrap_ci_high", "bootstrap_method"),
)
_PASSES = ("mcnemar_p", "n_pass_pairs", "passes_gained", "passes_lost", "pass_rate_difference")
DIFFERENCE = 0.05
"""The least difference of scores in [0, 1] that matters, where nothing else is said."""

SCORE = "score"
"""The name of scores that no label names."""
_TESTS = ("p_value", "wilcoxon_p", "sign_p", "mcnemar_p")
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
    - ``mcnemar_p``: McNemar's exact test of whether as many begin to pass as cease to, over the ``n_pass_pairs`` of which it is known in
      both runs: by a flag, or by the ``pass_at`` of the metric or judge; ``passes_gained``, ``passes_lost``, and ``pass_rate_difference``, their difference over the pairs, with its interval
      ``pass_rate_ci_low`` to ``pass_rate_ci_high`` (R. G. Newcombe, Statistics in Medicine 17, 1998, 2635-2650, method 10).

    - ``adjusted_p_value``, ``adjusted_wilcoxon_p``, ``adjusted_sign_p``, ``adjusted_mcnemar_p``: the p of each test, adjusted for the number of criteria.
    - ``corrected``, with *gold*: the mean difference as labels would have it, because a judge's bias may differ between the runs: a fraction ``lambda`` of the judge's
      mean difference over all pairs, and what the labels add to it over the ``n_labelled`` pairs, with its 95 % interval; ``plain_bias`` is how far ``mean_difference`` lies from it. It takes 10
      labelled pairs, which were drawn with equal chances. Where pairs share a session the interval is by ``sessions``.
    - ``words``: a sentence: ``better`` or ``worse`` where the t interval leaves out 0 and ``adjusted_p_value`` is below .05, else how many more
      pairs would tell *difference*, by the power of the paired t-test (.8, at 5 %).

    What is not defined is null, and ``reasons`` says why, by the count that is too small or the test it is about. Where no pair differs the exact tests have a p of 1.
    ``sentences`` has one sentence for each label, which names the label; the gate's label comes first. Scores that no label names are called
    ``score``. ``words`` has all of them as one text.

    :param min_samples: how many pairs there have to be, 2 or more.
    :param difference: the least difference that matters, in the scores' own scale; more than 0. By default .05, and none for a label on a scale
        of its own.
    :param criteria: only these; all by default.
    :param adjustment: how the adjusted p-values account for several criteria: ``holm``, ``fdr`` (Benjamini and Hochberg, for screening), ``bonferroni`` or ``none``.
    :param gold: a file of labels: JSON lines ``{subject_id, score, arm}`` or CSV, ``arm`` being ``baseline`` or ``variant``; or ``run``, its id. ``criterion`` may stand beside; without it a label is
        about all. Labels of one arm alone are refused.
    """

    name = "paired"

    min_samples: int = attrs.field(default=2, validator=SAMPLES)
    criteria: tuple[str, ...] = ()
    difference: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(Within(0, inf, "more than 0", open=True))
    )
    adjustment: Adjustment = attrs.field(default="holm", validator=check_adjustment)
    gold: InputPath | None = None

    def __attrs_post_init__(self) -> None:
        if self.gold is not None and not self.gold.exists():
            message = f"there is no file of labels at {self.gold}; name one, or leave gold out"
            raise ConfigError(Problem(message, path="gold", value=str(self.gold)))

    def compare(self, baseline: Results, variant: Results) -> Mapping[str, object]:
        """The tests of each criterion, and the sentence."""
        before, after = Table.of(baseline), Table.of(variant)
        ours, theirs = pairs(before, after)
        labels = None if self.gold is None else self._labels(baseline, variant)
        passes = pair_passes(baseline, variant)
        raw = {*baseline.raw, *variant.raw}
        found = compared(
            baseline, variant, self.criteria, lambda sides: self._tested(sides, (ours, theirs), labels, passes, raw)
        )
        self._adjust(found["criteria"].values())
        sentences = [f"{label}: {found['criteria'][label]['words']}" for label in _ordered(found["criteria"], passes)]
        if not self.criteria and not before.criteria | after.criteria:
            with quiet():
                sentences = [f"{SCORE}: {self._on_scores(*_paired(after.whole[theirs], before.whole[ours]))}"]
        return {**found, "words": ". ".join(sentences) or "no label is in both runs", "sentences": sentences}

    def _on_scores(self, column: Column, power: int) -> str:
        """Return the sentence on scores that no label names."""
        ends = lengths(_t_test(column)[1], power)[0] if len(column) >= self.min_samples and varies(column) else {}
        return self._words(column, power, ends)

    def _labels(self, baseline: Results, variant: Results) -> Labels:
        """The labels in the file *gold*.

        :raises DataError: when they are wrong, of one arm alone, or about other subjects.
        """
        assert self.gold is not None  # the caller has seen to it
        labels = read_labels(self.gold, baseline, variant)
        judged = {id for _, id in Table.of(baseline).rows} & {id for _, id in Table.of(variant).rows}
        if not any(judged & pairs.keys() for pairs in labels.values()):
            labelled, example = next(iter(next(iter(labels.values())))), next(iter(judged), None)
            message = f"no label in {self.gold} is about a subject of both runs: the first is of {labelled!r}, they have {example!r}"
            raise DataError(Problem(message, path="subject_id", value=labelled))
        return labels

    def _adjust(self, tests: Collection[dict[str, Any]]) -> None:
        """Set the adjusted p-values of the criteria's *tests*, and let the sentences be true of them, and of labels."""
        for name in _TESTS:
            adjust_all(tests, self.adjustment, name=name)
        for one in tests:
            one["words"] = adjusted_sentence(one["words"], one)
            if "corrected" in one:
                one["words"] += f"; {corrected_words(one['corrected'])}"

    def _tested(
        self,
        sides: Sides,
        rows: tuple[Rows, Rows],
        labels: Labels | None,
        passed: PairedPasses,
        raw: Collection[str],
    ) -> dict[str, Any]:
        ours, theirs = rows
        now, was = sides.variant.scores(sides.criterion)[theirs], sides.baseline.scores(sides.criterion)[ours]
        column, power = _paired(now, was)
        figures, reasons = self._differences(column, power)
        passes, why = self._passes(passed, sides.criterion)
        if labels is not None:
            figures["corrected"], unknown = _corrected(sides, ours, theirs, labels)
            why |= unknown
        told = explained({"n_pairs": len(column), **figures, **passes}, {**reasons, **why})
        if sides.criterion not in raw:
            return {**told, "words": self._words(column, power, figures)}
        return {**told, "scale": "raw", "words": f"{self._words(column, power, figures, raw=True)} (raw scale)"}

    def _words(self, column: Column, power: int, ends: Mapping[str, float | None], *, raw: bool = False) -> str:
        """The sentence on the differences in *column*, divided by two to that *power*, with the *ends* of the interval of their mean."""
        mean = multiplied(float(column.mean()), power) if len(column) else None
        spread = multiplied(float(column.std(ddof=1)), power) if varies(column) else 0.0
        low, high = ends.get("ci_low"), ends.get("ci_high")
        difference = DIFFERENCE if self.difference is None and not raw else self.difference
        return sentence(len(column), mean, low, high, spread, difference, self.min_samples)

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
        return {**figures, **test, "adjusted_p_value": test["p_value"], "bootstrap_method": method}, large

    def _passes(self, passes: PairedPasses, criterion: str) -> tuple[dict[str, Any], dict[str, str]]:
        """McNemar's test, and what it rests on."""
        found = passes.counts(criterion)
        count, gained, lost = found.known, found.b, found.a
        if not count or criterion not in passes.labels or criterion in passes.assumed:
            return dict.fromkeys((*_PASSES, *_PASS_INTERVAL)) | {"n_pass_pairs": 0}, {"mcnemar_p": _NO_FLAGS}
        counts = {"n_pass_pairs": count, "passes_gained": gained, "passes_lost": lost}
        figures = {**dict.fromkeys((*_PASSES, *_PASS_INTERVAL)), **counts}
        figures["pass_rate_difference"] = (gained - lost) / count
        if reasons := few(self.min_samples, {"n_pass_pairs": count}):
            return figures, reasons
        ends = rate_interval(found.both, gained, lost, count)
        return {**figures, "mcnemar_p": even(gained, lost), **dict(zip(_PASS_INTERVAL, ends, strict=True))}, {}


def _ordered(criteria: Mapping[str, object], passes: PairedPasses) -> list[str]:
    """Return the names of *criteria*: the labels of the file first, the gate's at the top."""
    known = [label for label in passes.labels if label in criteria]
    return [*dict.fromkeys([*known, *criteria])]


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


def _corrected(sides: Sides, ours: Rows, theirs: Rows, labels: Labels) -> tuple[dict[str, Any], dict[str, str]]:
    """The mean difference as *labels* would have it."""
    import numpy as np

    judged = sides.variant.scores(sides.criterion)[theirs] - sides.baseline.scores(sides.criterion)[ours]
    known, keys = labels.get(sides.criterion) or labels.get("") or {}, list(sides.baseline.rows)
    pairs = [known.get(keys[row][1]) for row in ours.tolist()]
    truth = np.array([np.nan if pair is None else pair[1] - pair[0] for pair in pairs], float)
    there = ~np.isnan(judged)
    known_sessions = sides.baseline.sessions
    sessions = [known_sessions.get(keys[row], keys[row]) for row in ours[there].tolist()]
    return corrected(truth[there], judged[there], sessions)


def _t_test(differences: Column) -> tuple[dict[str, float | None], dict[str, float]]:
    """The test's figures, and the ends of the interval."""
    from scipy import stats

    test = stats.ttest_1samp(differences, 0.0)
    low, high = test.confidence_interval(0.95)
    effect = differences.mean() / differences.std(ddof=1)
    figures = {"t": test.statistic, "p_value": test.pvalue, "effect_size": effect}
    ends = {"ci_low": float(low), "ci_high": float(high)}
    return {name: plain(value) for name, value in figures.items()}, ends
