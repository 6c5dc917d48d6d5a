"""Tests of the scores of the same subjects in two runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import inf, isnan
from typing import TYPE_CHECKING, Any

import attrs

from dicast import ConfigError, DataError, InputPath, Problem, Results, Within
from dicast.reporting import PairedPasses, pair_passes

from ..numbers.adjustment import SAMPLES, Adjustment, check_adjustment, set_adjusted_p_values
from ..numbers.bootstrap import bootstrap_interval
from ..numbers.scale import TOO_LARGE, common_power, divide_by_power, multiply_by_power, scale_back
from ..numbers.ties import differences, varies
from ..numbers.values import ignore_float_warnings, json_number
from ..scores.sides import Sides, compare_criteria
from ..scores.table import Table, shared_rows
from ..text.reasons import too_few, with_reasons
from ..text.sentences import adjusted_paired_sentence, paired_sentence
from .corrected import Labels, correct_difference, correction_text, read_labels
from .pass_changes import exact_sign_p, rate_difference_interval

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
"""Default of the smallest difference that matters, for scores in [0, 1]."""

SCORE = "score"
"""Name of scores without a label."""
_TESTS = ("p_value", "wilcoxon_p", "sign_p", "mcnemar_p")
_PASS_INTERVAL = ("pass_rate_ci_low", "pass_rate_ci_high")

_ALIKE = "all differences are equal: there is no variance to compare them with"
_TOO_FEW = "there are too few pairs: the resamples vary too little"
_NO_FLAGS = "no subject has a score flag in both runs; the extractor's option threshold makes flags"


@attrs.frozen
class Paired:
    """Paired tests of the scores of the same subjects: paired t, Wilcoxon, sign test, bootstrap, McNemar for passes.

    Subjects are paired by kind and id; subjects with a score in one run alone are left out. All tests are two-sided, and intervals are
    95 %; differences are variant minus baseline. For each criterion:

    - ``n_pairs``, ``mean_difference``; ``t``, ``p_value``, ``ci_low`` and ``ci_high`` of the paired t-test; ``effect_size``, the mean
      difference over the differences' standard deviation (d_z).
    - ``wilcoxon_p``: the signed-rank test, without pairs of equal scores. It is exact for up to 50 pairs if no scores are equal and no two
      differences have the same size, and for up to 13 pairs in any case; else it is the normal approximation, corrected for ties. Scores, and
      differences, that agree in 12 significant digits of the scores are equal. ``sign_p``: the exact test of equal chances of a rise and a fall.
    - ``bootstrap_ci_low``, ``bootstrap_ci_high``: the interval of the mean difference by resampling pairs, seeded and so reproducible;
      ``bootstrap_method`` describes the method.
    - ``mcnemar_p``: McNemar's exact test of equal chances of starting to pass and ceasing to pass. It is over the ``n_pass_pairs`` that are
      known to pass or fail in both runs: by a flag, or by the ``pass_at`` of the metric or judge. ``passes_gained`` and ``passes_lost`` are
      the counts; ``pass_rate_difference`` is their difference over the pairs, with its interval
      ``pass_rate_ci_low`` to ``pass_rate_ci_high`` (R. G. Newcombe, Statistics in Medicine 17, 1998, 2635-2650, method 10).
    - ``adjusted_p_value``, ``adjusted_wilcoxon_p``, ``adjusted_sign_p``, ``adjusted_mcnemar_p``: the p of each test, adjusted for the number of criteria.
    - ``corrected``, with *gold*: the mean difference corrected by labels, because a judge's bias may differ between the runs. It is a fraction
      ``lambda`` of the judge's mean difference over all pairs, plus the mean remainder of the labels over the ``n_labelled`` pairs, with its
      95 % interval; ``plain_bias`` is ``mean_difference`` minus the corrected one. It needs 10 labeled pairs, drawn with equal
      probabilities. If pairs share a session, the interval is by ``sessions``.
    - ``words``: a sentence: ``better`` or ``worse`` if the t interval excludes 0 and ``adjusted_p_value`` is below .05, else how many more
      pairs would detect *difference*, by the power of the paired t-test (.8, at 5 %).

    An undefined figure is null, and ``reasons`` has the cause by the name of the count or test. If no pair differs, the exact tests have a p of 1.
    ``sentences`` has one sentence for each label, which names the label; the gate's label comes first. Scores without a label are called
    ``score``. ``words`` has all sentences as one text.

    :param min_samples: how many pairs are needed, 2 or more.
    :param difference: the smallest difference that matters, in the scores' own scale; more than 0. By default .05, and none for a label on a
        raw scale.
    :param criteria: only these criteria; all by default.
    :param adjustment: how the adjusted p-values account for several criteria: ``holm``, ``fdr`` (Benjamini and Hochberg, for screening), ``bonferroni`` or ``none``.
    :param gold: a file of labels: JSON lines ``{subject_id, score, arm}`` or CSV. ``arm`` is ``baseline`` or ``variant``; ``run``, the id of
        the run, can replace it. ``criterion`` is optional; a label without it is about all criteria. Labels of one arm alone are refused.
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
        """Return the tests of each criterion, and the sentences."""
        before, after = Table.of(baseline), Table.of(variant)
        ours, theirs = shared_rows(before, after)
        labels = None if self.gold is None else self._read_gold_labels(baseline, variant)
        passes = pair_passes(baseline, variant)
        raw = {*baseline.raw, *variant.raw}
        document = compare_criteria(
            baseline,
            variant,
            self.criteria,
            lambda sides: self._test_criterion(sides, (ours, theirs), labels, passes, raw),
        )
        self._adjust_tests(document["criteria"].values())
        sentences = [
            f"{label}: {document['criteria'][label]['words']}" for label in _order_labels(document["criteria"], passes)
        ]
        if not self.criteria and not before.criteria | after.criteria:
            with ignore_float_warnings():
                sentences = [
                    f"{SCORE}: {self._sentence_without_label(*_paired_differences(after.record_scores[theirs], before.record_scores[ours]))}"
                ]
        return {**document, "words": ". ".join(sentences) or "no label is in both runs", "sentences": sentences}

    def _sentence_without_label(self, column: Column, power: int) -> str:
        """Return the sentence on scores without a label."""
        ends = scale_back(_t_test(column)[1], power)[0] if len(column) >= self.min_samples and varies(column) else {}
        return self._words(column, power, ends)

    def _read_gold_labels(self, baseline: Results, variant: Results) -> Labels:
        """Read the labels in the file *gold*.

        :raises DataError: if they are wrong, of one arm alone, or about other subjects.
        """
        assert self.gold is not None  # checked by the caller
        labels = read_labels(self.gold, baseline, variant)
        shared_ids = {id for _, id in Table.of(baseline).rows} & {id for _, id in Table.of(variant).rows}
        if not any(shared_ids & subject_labels.keys() for subject_labels in labels.values()):
            labeled_id, example = next(iter(next(iter(labels.values())))), next(iter(shared_ids), None)
            message = f"no label in {self.gold} is about a subject of both runs: the first label is of {labeled_id!r}, the runs have {example!r}"
            raise DataError(Problem(message, path="subject_id", value=labeled_id))
        return labels

    def _adjust_tests(self, tests: Collection[dict[str, Any]]) -> None:
        """Set the adjusted p-values of the criteria's *tests*, and rewrite the sentences by them and by the labels."""
        for name in _TESTS:
            set_adjusted_p_values(tests, self.adjustment, name=name)
        for test in tests:
            test["words"] = adjusted_paired_sentence(test["words"], test)
            if "corrected" in test:
                test["words"] += f"; {correction_text(test['corrected'])}"

    def _test_criterion(
        self,
        sides: Sides,
        rows: tuple[Rows, Rows],
        labels: Labels | None,
        pass_pairs: PairedPasses,
        raw: Collection[str],
    ) -> dict[str, Any]:
        ours, theirs = rows
        after, before = sides.variant.scores(sides.criterion)[theirs], sides.baseline.scores(sides.criterion)[ours]
        column, power = _paired_differences(after, before)
        figures, reasons = self._difference_figures(column, power)
        passes, pass_reasons = self._pass_figures(pass_pairs, sides.criterion)
        if labels is not None:
            figures["corrected"], unknown = _correct_criterion(sides, ours, theirs, labels)
            pass_reasons |= unknown
        document = with_reasons({"n_pairs": len(column), **figures, **passes}, {**reasons, **pass_reasons})
        if sides.criterion not in raw:
            return {**document, "words": self._words(column, power, figures)}
        return {**document, "scale": "raw", "words": f"{self._words(column, power, figures, raw=True)} (raw scale)"}

    def _words(self, column: Column, power: int, ends: Mapping[str, float | None], *, raw: bool = False) -> str:
        """Return the sentence on the differences in *column*, with the *ends* of the interval of their mean.

        The differences were divided by two to the power *power*.
        """
        mean = multiply_by_power(float(column.mean()), power) if len(column) else None
        spread = multiply_by_power(float(column.std(ddof=1)), power) if varies(column) else 0.0
        low, high = ends.get("ci_low"), ends.get("ci_high")
        difference = DIFFERENCE if self.difference is None and not raw else self.difference
        return paired_sentence(len(column), mean, low, high, spread, difference, self.min_samples)

    def _difference_figures(self, column: Column, power: int) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the figures of the differences in *column*, which were divided by two to the power *power*, and the reasons for null figures."""
        figures: dict[str, Any] = dict.fromkeys(_DIFFERENCES)
        count = len(column)
        mean = {"mean_difference": float(column.mean())} if count else {}
        scaled, reasons_of_size = scale_back(mean, power)
        figures |= scaled
        if reasons := too_few(self.min_samples, {"n_pairs": count}):
            return figures, {**reasons, **reasons_of_size}
        from scipy import stats  # type: ignore[import-untyped]  # no types; 2 s, which starting a run does not spend

        # scipy returns NaN for equal pairs if they are too many for the exact test.
        figures["wilcoxon_p"] = json_number(stats.wilcoxon(column).pvalue) if column.any() else 1.0
        figures["sign_p"] = exact_sign_p(int((column > 0).sum()), int((column < 0).sum()))
        if not varies(column):
            return figures, {"t": _ALIKE, **reasons_of_size}
        (test, ends), (method, resampled) = _t_test(column), bootstrap_interval(column)
        vary_too_little = any(map(isnan, resampled.values()))
        for interval_ends, reason in ((ends, TOO_LARGE), (resampled, _TOO_FEW if vary_too_little else TOO_LARGE)):
            scaled, unknown = scale_back(interval_ends, power, reason)
            figures, reasons_of_size = {**figures, **scaled}, {**reasons_of_size, **unknown}
        return {**figures, **test, "adjusted_p_value": test["p_value"], "bootstrap_method": method}, reasons_of_size

    def _pass_figures(self, passes: PairedPasses, criterion: str) -> tuple[dict[str, Any], dict[str, str]]:
        """Return McNemar's test and its counts, and the reasons for null figures."""
        pair_counts = passes.counts(criterion)
        count, gained, lost = pair_counts.known, pair_counts.b, pair_counts.a
        if not count or criterion not in passes.labels or criterion in passes.assumed:
            return dict.fromkeys((*_PASSES, *_PASS_INTERVAL)) | {"n_pass_pairs": 0}, {"mcnemar_p": _NO_FLAGS}
        counts = {"n_pass_pairs": count, "passes_gained": gained, "passes_lost": lost}
        figures = {**dict.fromkeys((*_PASSES, *_PASS_INTERVAL)), **counts}
        figures["pass_rate_difference"] = (gained - lost) / count
        if reasons := too_few(self.min_samples, {"n_pass_pairs": count}):
            return figures, reasons
        ends = rate_difference_interval(pair_counts.both, gained, lost, count)
        return {**figures, "mcnemar_p": exact_sign_p(gained, lost), **dict(zip(_PASS_INTERVAL, ends, strict=True))}, {}


def _order_labels(criteria: Mapping[str, object], passes: PairedPasses) -> list[str]:
    """Return the names of *criteria*: the labels of the pipeline first, with the gate's label at the top."""
    labels = [label for label in passes.labels if label in criteria]
    return [*dict.fromkeys([*labels, *criteria])]


def _paired_differences(after: Column, before: Column) -> tuple[Column, int]:
    """Return the differences of the pairs with both scores, divided by two to a power, and the power."""
    import numpy as np  # 0.1 s, which starting a run does not spend

    both, power = ~(np.isnan(after) | np.isnan(before)), 0
    after, before = after[both], before[both]
    if np.isinf(after - before).any():  # although the scores are finite
        after, before, power = after / 2, before / 2, 1
    change = differences(after, before)
    exponent = common_power(change)
    return divide_by_power(change, exponent), power + exponent


def _correct_criterion(sides: Sides, ours: Rows, theirs: Rows, labels: Labels) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the mean difference corrected by *labels*, and the reasons for null figures."""
    import numpy as np

    judge_differences = sides.variant.scores(sides.criterion)[theirs] - sides.baseline.scores(sides.criterion)[ours]
    labels_of_criterion, keys = labels.get(sides.criterion) or labels.get("") or {}, list(sides.baseline.rows)
    label_pairs = [labels_of_criterion.get(keys[row][1]) for row in ours.tolist()]
    truth = np.array([np.nan if pair is None else pair[1] - pair[0] for pair in label_pairs], float)
    is_judged = ~np.isnan(judge_differences)
    known_sessions = sides.baseline.sessions
    sessions = [known_sessions.get(keys[row], keys[row]) for row in ours[is_judged].tolist()]
    return correct_difference(truth[is_judged], judge_differences[is_judged], sessions)


def _t_test(differences: Column) -> tuple[dict[str, float | None], dict[str, float]]:
    """Return the figures of the paired t-test, and the ends of the interval."""
    from scipy import stats

    test = stats.ttest_1samp(differences, 0.0)
    low, high = test.confidence_interval(0.95)
    effect = differences.mean() / differences.std(ddof=1)
    figures = {"t": test.statistic, "p_value": test.pvalue, "effect_size": effect}
    ends = {"ci_low": float(low), "ci_high": float(high)}
    return {name: json_number(value) for name, value in figures.items()}, ends
