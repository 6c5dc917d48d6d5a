"""Change of each label between two runs. ``dicast compare``, the gate, reports and the dashboard show these figures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import attrs

from dicast import ALL_METRICS, Results
from dicast.reporting import pair_passes
from dicast.toolkit.printable import short_name

from ..numbers.adjustment import RULES, Adjustment, adjust_p_values, set_adjusted_p_values
from ..scores.table import Table
from ..text.sentences import ALPHA, count_subjects, interval_text, p_number
from .estimate import Estimate, more_pairs
from .faults import ROLES, end_faults, pair_faults, way_faults
from .pairs import SCORE, pair_label

Answer = Literal["better", "worse", "no difference found", "cannot tell"]
ANSWERS = get_args(Answer)

MARGIN = 0.02
"""Default of the largest difference that does not matter, for scores in [0, 1]."""

_NAME = 24
"""Most characters of a run's name in a sentence."""

_RUN = 6
"""Number of last characters of a run's id; commands accept them."""

_ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")


@attrs.frozen
class LabelChange:
    """Change of the mean of *label* from the baseline to the variant, over the subjects with a score in both runs.

    :param estimate: the mean of the differences, variant minus baseline, with its interval.
    :param answer: ``better`` or ``worse`` if the adjusted p is below 5 %, else ``no difference found`` if the whole interval is within plus and
        minus *margin*, else ``cannot tell``.
    :param adjusted_p_value: the p of the label, for labels other than the gate's by the rule *adjustment*.
    :param margin: the largest difference that does not matter; None if it is not known, as on a raw scale.
    :param missing_pairs: how many more pairs would likely give another answer than ``cannot tell``; None if it is not known, or not needed.
    :param identical: the number of pairs with equal outputs and judges, whose difference is 0.
    :param unpaired_baseline: the number of subjects with a score in the baseline alone.
    :param unpaired_variant: the number of subjects with a score in the variant alone.
    :param adjustment: the rule that adjusted the p; ``none`` for the gate's labels and the only label.
    :param varied: the number of identical pairs whose scores differ, because the judge's answer varies.
    :param held_back: the numbers of subjects that the proxies held back in the baseline and in the variant: their scores are open.
    :param is_raw: the scores are on a scale of their own.
    :param runs: the names of the baseline and the variant in sentences.
    :param faults: the reasons why a gate does not decide by this change: other judges or metrics of the label, other inputs, a run without its
        end, or too many subjects of one run alone.
    """

    label: str
    estimate: Estimate
    answer: Answer
    adjusted_p_value: float | None
    margin: float | None
    missing_pairs: int | None
    identical: int
    unpaired_baseline: int
    unpaired_variant: int
    held_back: tuple[int, int]
    is_raw: bool
    runs: tuple[str, str] = ("A", "B")
    faults: Sequence[str] = ()
    varied: int = 0
    adjustment: Adjustment = "none"

    @property
    def words(self) -> str:
        """The answer with the name of the better run and the figures, as a sentence."""
        winner = f"{self.winner} is ahead, " if self.winner else ""
        return f"{self.answer}: {winner}{'; '.join([self.figures, *self._cautions()])}"

    @property
    def winner(self) -> str | None:
        """The name of the better run; None if the answer is neither ``better`` nor ``worse``."""
        return {"worse": self.runs[0], "better": self.runs[1]}.get(self.answer)

    @property
    def needed(self) -> str | None:
        """The number of further pairs that are needed to tell, or of subjects that the proxies held back, as a sentence; None if not known or needed."""
        if self.answer != "cannot tell":
            return None
        held_back = held_back_text(self.held_back, is_raw=self.is_raw)
        return held_back or (None if self.missing_pairs is None else more_pairs_text(self.missing_pairs))

    @property
    def figures(self) -> str:
        """The mean difference with its interval and the number of pairs."""
        estimate, pairs = self.estimate, count_pairs(self.estimate.n)
        if not estimate.n:
            return "no subject has a score in both runs"
        if any(self.held_back):
            return f"{range_text(estimate)}over {pairs}"
        if estimate.mean is None or estimate.error is None:
            return f"the scores of {pairs} are too large"
        if self.identical == estimate.n:
            return f"the outputs of {pairs} are equal in both runs"
        if estimate.low is None or estimate.high is None or estimate.low == estimate.high:
            is_single = estimate.sessions == 1 and estimate.n > 1
            equal = "all differences equal" if estimate.mean else "all differences are 0"
            return f"{estimate.mean:+.4g} over {pairs}, {'all of one session' if is_single else equal}"
        return f"{interval_text(estimate.mean, estimate.low, estimate.high)}, over {pairs}"

    def _cautions(self) -> list[str]:
        parts = []
        if self.needed is not None:
            parts.append(self.needed)
        elif held_back := held_back_text(self.held_back, is_raw=self.is_raw):  # also next to an answer
            parts.append(held_back)
        elif self.answer == "cannot tell" and self.is_raw and self.margin is None and self.estimate.low is not None:
            parts.append("no margin is set for the raw scale (--margin)")
        estimate, adjusted = self.estimate, self.adjusted_p_value
        if estimate.p_value is not None and adjusted is not None and estimate.p_value < ALPHA <= adjusted:
            parts.append(f"p adjusted by {RULES[self.adjustment]} is {p_number(adjusted)}")
        if self.varied:
            parts.append(varied_text(self.varied, self.estimate.n))
        unpaired = ((self.unpaired_baseline, "scored in A only"), (self.unpaired_variant, "scored in B only"))
        parts += [f"{count:,} {place}" for count, place in unpaired if count]
        return [*parts, *(["raw scale"] if self.is_raw else [])]

    def json(self) -> dict[str, Any]:
        """Return the change for a document."""
        estimate = self.estimate
        return {
            "answer": self.answer,
            "n": estimate.n,
            "sessions": estimate.sessions,
            "identical": self.identical,
            **({"varied": self.varied} if self.varied else {}),
            "mean_difference": estimate.mean,
            "ci_low": estimate.low,
            "ci_high": estimate.high,
            "p_value": estimate.p_value,
            "adjusted_p_value": self.adjusted_p_value,
            **({"adjustment": self.adjustment} if self.adjustment != "none" else {}),
            "margin": self.margin,
            "more": self.missing_pairs,
            "unpaired_a": self.unpaired_baseline,
            "unpaired_b": self.unpaired_variant,
            **(self._held_back_json() if any(self.held_back) else {}),
            **({"scale": "raw"} if self.is_raw else {}),
            **({"faults": [*self.faults]} if self.faults else {}),
            "needed": self.needed,
            "winner": self.winner,
            "words": self.words,
        }

    def _held_back_json(self) -> dict[str, Any]:
        """Return the numbers of subjects that the proxies held back, and the lowest and the highest mean difference that is possible."""
        least, most = self.estimate.means or (None, None)
        counts = {"held_back_a": self.held_back[0], "held_back_b": self.held_back[1]}
        return {**counts, "mean_difference_low": least, "mean_difference_high": most}


def held_back_text(counts: tuple[int, int], *, is_raw: bool) -> str:
    """Return a sentence on the subjects that the proxies held back in the baseline and in the variant; empty without any."""
    sides = [f"{count_subjects(count)} of {name}" for count, name in zip(counts, ROLES, strict=True) if count]
    bounds = ", whose raw values have no bounds" if is_raw else ""
    return f"the proxies held back {' and '.join(sides)}{bounds}" if sides else ""


def varied_text(count: int, pairs: int) -> str:
    """Return a sentence on the *count* of *pairs* with equal outputs and judges whose scores differ."""
    return f"{count:,} of {count_pairs(pairs)} have equal outputs and judges and count as unchanged, although their scores differ: the judge varies"


def range_text(estimate: Estimate) -> str:
    """Return the lowest and the highest mean that are possible, with the outer ends of their intervals and a comma; empty without bounds."""
    if estimate.means is None:
        return ""
    least, most = estimate.means
    ends = (
        ""
        if estimate.low is None or estimate.high is None
        else f"95 % interval {estimate.low:.4f} to {estimate.high:.4f}, "
    )
    return f"between {least:+.4f} and {most:+.4f}, {ends}"


def count_pairs(count: int) -> str:
    """Return *count* with the noun: "1 pair", "2 pairs"."""
    return "1 pair" if count == 1 else f"{count:,} pairs"


def more_pairs_text(count: int) -> str:
    """Return a sentence on the *count* of further pairs that would likely give another answer."""
    number = round_up(count)
    return f"about {number:,} more pair{' is' if number == 1 else 's are'} needed to tell"


def run_names(baseline: Results, variant: Results) -> tuple[str, str]:
    """Return the names of both runs in sentences: experiments of one suite without the suite, else pipelines.

    Runs of one name are A and B, with the ends of their ids.
    """
    before, after = baseline.name, variant.name
    if before == after:
        ends = [f" ({run.run_id[-_RUN:]})" if _ULID.fullmatch(run.run_id) else "" for run in (baseline, variant)]
        return f"A{ends[0]}", f"B{ends[1]}"
    (suite, _, first), (other_suite, _, second) = before.rpartition("/"), after.rpartition("/")
    names = (first, second) if suite == other_suite else (before, after)
    return short_name(names[0], _NAME), short_name(names[1], _NAME)


def round_up(count: int) -> int:
    """Return *count* rounded up to two digits."""
    step = int(10 ** max(0, len(str(count)) - 2))
    return -(-count // step) * step


def label_changes(
    baseline: Results,
    variant: Results,
    margin: float | None = None,
    labels: Sequence[str] = (),
    adjustment: Adjustment = "holm",
) -> dict[str, LabelChange]:
    """Return the change of each label that both runs have: the gate's labels first, then the labels that are worse, the largest drop first.

    The gate's labels, and the only label, are tested at 5 % each; the p-values of the other labels are adjusted together. A label without any
    difference is no test among them: its smallest possible p is 1 (R. E. Tarone, Biometrics 46, 1990, 515-522).

    :param margin: the largest difference that does not matter; .02 by default, and none for a label on a raw scale.
    :param labels: only these labels; all by default.
    :param adjustment: how the p-values of the other labels are adjusted.
    """
    names, gated = shared_labels(baseline, variant), gated_labels(baseline, variant)
    names = [name for name in names if not labels or name in labels]
    raw, runs = {*baseline.raw, *variant.raw}, run_names(baseline, variant)
    pairs = {name: pair_label(baseline, variant, name) for name in names}
    estimates = {name: pair.estimate() for name, pair in pairs.items()}
    p_values = {name: estimate.p_value for name, estimate in estimates.items()}
    others = {name: p for name, p in p_values.items() if p is not None and name not in gated and len(names) > 1}
    others = {name: p for name, p in others.items() if estimates[name].error or any(estimates[name].means or ())}
    p_values |= dict(zip(others, adjust_p_values([*others.values()], adjustment), strict=True))
    changes, ends = {}, [*end_faults(baseline, variant)]
    for name, pair in pairs.items():
        least = MARGIN if margin is None and name not in raw else margin
        answer, missing = _decide(estimates[name], p_values[name], least)
        counts = (pair.identical, pair.unpaired_baseline, pair.unpaired_variant)
        faults = [*way_faults(baseline, variant, name)]
        faults = faults or [*ends, *pair_faults(estimates[name].n, counts[1:], (baseline, variant), name)]
        changes[name] = LabelChange(
            name,
            estimates[name],
            answer,
            p_values[name],
            least,
            missing,
            *counts,
            pair.held_back,
            is_raw=name in raw,
            runs=runs,
            faults=faults,
            varied=len(pair.varied),
            adjustment=adjustment if name in others else "none",
        )
    return dict(sorted(changes.items(), key=lambda item: _rank(item[1], gated)))


def _rank(change: LabelChange, gated: Sequence[str]) -> tuple[int, float]:
    """Return the place of a label: of the gate, worse, or any other."""
    if change.label in gated:
        return 0, 0.0
    return (1, min(change.estimate.means or (0.0,))) if change.answer == "worse" else (2, 0.0)


def shared_labels(baseline: Results, variant: Results) -> list[str]:
    """Return the labels with scores in both runs: the labels of the pipeline first, with the gate's label at the top.

    Records that have a score and no labels have the label ``score``.
    """
    before, after = Table.of(baseline), Table.of(variant)
    if not before.criteria | after.criteria:
        return [SCORE]
    names = [name for name in before.criteria if name in after.criteria]
    if before.only_metric is not None and before.only_metric == after.only_metric:
        names = [name for name in names if name != ALL_METRICS]  # the only metric has the same scores under its name
    passes = pair_passes(baseline, variant)
    first = [label for label in (*gated_labels(baseline, variant), *passes.labels) if label in names]
    return [*dict.fromkeys([*first, *sorted(names)])]


def gated_labels(baseline: Results, variant: Results) -> tuple[str, ...]:
    """Return the labels of the gate of *variant*, else of *baseline*, else the label of the score; a gate on the only metric is about its label."""
    score_label = pair_passes(baseline, variant).label
    names = variant.gated or baseline.gated or (() if score_label is None else (score_label,))
    return tuple(gated_label(variant, name) for name in names)


def adjust_criteria(
    tests: Mapping[str, dict[str, Any]],
    runs: tuple[Results, Results],
    adjustment: Adjustment,
    family_size: int = 0,
    name: str = "p_value",
) -> None:
    """Set ``adjusted_NAME`` in the test of each criterion from its p-value *name*, by the rule of :func:`label_changes`.

    The labels of the gate of *runs* are tested alone; the other criteria form one family. With a *family_size* all criteria are in the family.
    """
    gated = () if family_size else gated_labels(*runs)
    set_adjusted_p_values((test for label, test in tests.items() if label not in gated), adjustment, family_size, name)
    for test in (test for label, test in tests.items() if label in gated):
        test[f"adjusted_{name}"] = test[name]


def gated_label(run: Results, name: str) -> str:
    """Return the label of the scores that a gate on *name* is about: the only metric for all metrics together."""
    only = Table.of(run).only_metric
    return only if name == ALL_METRICS and only is not None else name


def _decide(estimate: Estimate, adjusted: float | None, margin: float | None) -> tuple[Answer, int | None]:
    """Return the answer by the *adjusted* p and the interval of *estimate*, and the number of further pairs that would likely give another."""
    low, high = estimate.low, estimate.high
    if estimate.means is None or (estimate.error is None and estimate.ends is None):
        return "cannot tell", None
    if adjusted is not None and adjusted < ALPHA:
        return ("better" if min(estimate.means) > 0 else "worse"), None
    if low is not None and high is not None and margin is not None and -margin <= low and high <= margin:
        return "no difference found", None
    mean = estimate.mean
    if mean is None:
        return "cannot tell", None  # more pairs do not replace the scores of subjects that were held back
    reach = max(abs(mean), 0.0 if margin is None else margin - abs(mean))
    is_adjusted = adjusted is not None and estimate.p_value is not None
    alpha = ALPHA * (estimate.p_value or 0.0) / (adjusted or 1.0) if is_adjusted else ALPHA
    far = None if margin is None or abs(mean) >= margin - abs(mean) else margin + abs(mean)
    return "cannot tell", more_pairs(estimate, reach, alpha, far=far)
