"""Tests of the scores of the same subjects in two runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import inf, isnan
from typing import TYPE_CHECKING, Any

import attrs

from dicast import ConfigError, DataError, InputPath, Problem, Results, Within
from dicast.reporting import PairedPasses, pair_passes

from ..changes.estimate import Estimate
from ..changes.label_changes import LabelChange, adjust_criteria, label_changes
from ..changes.pairs import pair_label
from ..numbers.adjustment import SAMPLES, Adjustment, check_adjustment
from ..numbers.bootstrap import bootstrap_interval
from ..numbers.scale import TOO_LARGE, scale_back
from ..numbers.ties import varies
from ..numbers.values import json_number
from ..scores.sides import Sides, compare_criteria
from ..scores.table import Table, shared_rows
from ..text.reasons import too_few, with_reasons
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
_TESTS = ("p_value", "wilcoxon_p", "sign_p", "mcnemar_p")
_PASS_INTERVAL = ("pass_rate_ci_low", "pass_rate_ci_high")

_ALIKE = "all differences are equal: there is no variance to compare them with"
_ONE_SESSION = "all pairs are of one session, and two are needed"
_TOO_FEW = "there are too few pairs: the resamples vary too little"
_NO_FLAGS = "no subject has a score flag in both runs; the extractor's option threshold makes flags"


@attrs.frozen
class Paired:
    """Paired tests of the scores of the same subjects: paired t, Wilcoxon, sign test, bootstrap, McNemar for passes.

    Subjects are paired by kind and id; subjects with a score in one run alone are left out. All tests are two-sided, and intervals are
    95 %; differences are variant minus baseline. For each criterion:

    - ``n_pairs``, ``mean_difference``; ``t``, ``p_value``, ``ci_low`` and ``ci_high`` of the paired t-test, where the subjects of a session
      count together, with one degree of freedom less than sessions; ``effect_size``, the mean difference over the differences' standard
      deviation (d_z). A pair whose output and judge are equal in both runs has the difference 0, even without scores because of a proxy.
    - ``wilcoxon_p``: the signed-rank test, without pairs of equal scores. It is exact for up to 50 pairs if no scores are equal and no two
      differences have the same size, and for up to 13 pairs in any case; else it is the normal approximation, corrected for ties. Scores, and
      differences, that agree in 12 significant digits of the scores are equal. ``sign_p``: the exact test of equal chances of a rise and a fall.
    - ``bootstrap_ci_low``, ``bootstrap_ci_high``: the interval of the mean difference by resampling pairs, seeded and so reproducible;
      ``bootstrap_method`` describes the method.
    - ``mcnemar_p``: McNemar's exact test of equal chances of starting to pass and ceasing to pass. It is over the ``n_pass_pairs`` that are
      known to pass or fail in both runs: by a flag, or by the ``pass_at`` of the metric or judge. ``passes_gained`` and ``passes_lost`` are
      the counts; ``pass_rate_difference`` is their difference over the pairs, with its interval
      ``pass_rate_ci_low`` to ``pass_rate_ci_high`` (R. G. Newcombe, Statistics in Medicine 17, 1998, 2635-2650, method 10).
    - ``adjusted_p_value``, ``adjusted_wilcoxon_p``, ``adjusted_sign_p``, ``adjusted_mcnemar_p``: the p of each test, adjusted for the number of criteria; the gate's labels are tested alone.
    - ``corrected``, with *gold*: the mean difference corrected by labels, because a judge's bias may differ between the runs. It is a fraction
      ``lambda`` of the judge's mean difference over all pairs, plus the mean remainder of the labels over the ``n_labelled`` pairs, with its
      95 % interval; ``plain_bias`` is ``mean_difference`` minus the corrected one. It needs 10 labeled pairs, drawn with equal
      probabilities. If pairs share a session, the interval is by ``sessions``.
    - ``words``: a sentence: ``better`` or ``worse`` if ``adjusted_p_value`` is below .05, else ``no difference found`` if the t interval is
      within plus and minus *difference*, else ``cannot tell`` with the number of further pairs that would likely tell (in 80 % of cases).

    An undefined figure is null, and ``reasons`` has the cause by the name of the count or test. If no pair differs, the exact tests have a p of 1.
    ``sentences`` has one sentence for each label, which names the label; the gate's label comes first. Scores without a label are called
    ``score``. ``words`` has all sentences as one text. ``answers`` has the figures of the sentences by label, as ``dicast compare`` has them.

    :param min_samples: how many pairs are needed, 2 or more.
    :param difference: the largest difference that does not matter, in the scores' own scale; more than 0. By default .02, and none for a label
        on a raw scale.
    :param criteria: only these criteria; all by default.
    :param adjustment: how the adjusted p-values account for several criteria, without the gate's labels: ``holm``, ``fdr`` (Benjamini and Hochberg, for screening), ``bonferroni`` or ``none``.
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
        ours, theirs = shared_rows(baseline, variant)
        labels = None if self.gold is None else self._read_gold_labels(baseline, variant)
        passes = pair_passes(baseline, variant)
        changes = label_changes(baseline, variant, self.difference, self.criteria, self.adjustment)
        raw = {*baseline.raw, *variant.raw}
        document = compare_criteria(
            baseline,
            variant,
            self.criteria,
            lambda sides: self._test_criterion(sides, (baseline, variant), (ours, theirs), labels, passes, raw),
        )
        self._adjust_tests(document["criteria"], changes, (baseline, variant))
        sentences = [
            f"{label}: {self._words(change, document['criteria'].get(label))}" for label, change in changes.items()
        ]
        answers = {label: change.json() for label, change in changes.items()}
        words = ". ".join(sentences) or "no label is in both runs"
        return {**document, "answers": answers, "words": words, "sentences": sentences}

    def _words(self, change: LabelChange, test: Mapping[str, Any] | None) -> str:
        """Return the sentence on a label: the words of its *test* with the correction by labels, if it has one."""
        if change.estimate.n < self.min_samples:
            return f"too few pairs: {change.estimate.n:,} of the {self.min_samples:,} needed"
        corrected = (test or {}).get("corrected")
        return change.words if corrected is None else f"{change.words}; {correction_text(corrected)}"

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

    def _adjust_tests(
        self, tests: Mapping[str, dict[str, Any]], changes: Mapping[str, LabelChange], runs: tuple[Results, Results]
    ) -> None:
        """Set the adjusted p-values of the criteria's *tests*, and the sentences by the *changes* and by the labels."""
        for name in _TESTS:
            adjust_criteria(tests, runs, self.adjustment, name=name)
        for label, test in tests.items():
            if test["p_value"] is not None:
                test["adjusted_p_value"] = changes[label].adjusted_p_value
            test["words"] = self._words(changes[label], test)

    def _test_criterion(
        self,
        sides: Sides,
        runs: tuple[Results, Results],
        rows: tuple[Rows, Rows],
        labels: Labels | None,
        pass_pairs: PairedPasses,
        raw: Collection[str],
    ) -> dict[str, Any]:
        pairs = pair_label(*runs, sides.criterion)
        figures, reasons = self._difference_figures(pairs.change, pairs.power, pairs.estimate_scored())
        passes, pass_reasons = self._pass_figures(pass_pairs, sides.criterion)
        if labels is not None:
            figures["corrected"], unknown = _correct_criterion(sides, *rows, labels)
            pass_reasons |= unknown
        document = with_reasons({"n_pairs": len(pairs.change), **figures, **passes}, {**reasons, **pass_reasons})
        return {**document, "scale": "raw"} if sides.criterion in raw else document

    def _difference_figures(
        self, column: Column, power: int, estimate: Estimate
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the figures of the differences in *column*, which were divided by two to the power *power*, and the reasons for null figures.

        *estimate* is their mean with its interval.
        """
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
        figures |= {"ci_low": estimate.low, "ci_high": estimate.high}
        if not varies(column) or estimate.t is None:
            return figures, {"t": _ONE_SESSION if estimate.sessions == 1 else _ALIKE, **reasons_of_size}
        if estimate.low is None:
            reasons_of_size = {"ci_low": TOO_LARGE, **reasons_of_size}
        method, resampled = bootstrap_interval(column)
        vary_too_little = any(map(isnan, resampled.values()))
        scaled, unknown = scale_back(resampled, power, _TOO_FEW if vary_too_little else TOO_LARGE)
        effect = json_number(column.mean() / column.std(ddof=1))
        test = {"t": json_number(estimate.t), "p_value": estimate.p_value, "effect_size": effect}
        test["adjusted_p_value"] = estimate.p_value  # until all labels are known
        return {**figures, **scaled, **test, "bootstrap_method": method}, {**reasons_of_size, **unknown}

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
