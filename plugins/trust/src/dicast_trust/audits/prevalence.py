"""``trust/prevalence``: the mean of a gold standard over all subjects, from labels of some and a judge's scores of all."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal

import attrs

from dicast import Record, RunContext
from dicast.toolkit.json_values import MISSING, lookup

from ..statistics.moments import Moments
from ..stopping.anytime import METRICS, score
from .corrected import Z, combined_wilson
from .strata import LEAST_OF_TWO


@attrs.frozen
class Prevalence:
    """The mean of labels over all subjects, from labels of some and a judge's scores of all: what the judge's mean would be without its bias.

    Where scores and labels are 0 or 1, the judge's verdicts are strata, and labels may be drawn at different rates in each (``stratified-wilson``). Other scores
    are made use of as far as they go with the labels (``ppi++``). Labels of another population tell how often the judge is right, which corrects its
    rate among the subjects without labels (``rogan-gladen``); that is refused where it is right no more often than by chance. The result is ``{mean, ci_low, ci_high,
    method, n, labels, judge_mean, lambda, sensitivity, specificity, reasons}``. Labels have to be drawn at random.

    :param on: the label of the metric or judge; ``metrics`` is the combined score.
    :param label: where in a record's row the gold standard is, a dotted path; a subject without a number there is not labelled. Rows are
        in the records that a task or an extractor makes.
    :param labels: ``same``: the labelled subjects are some of those that the mean is about; ``other``: they are not.
    """

    name = "prevalence"

    on: str = METRICS
    label: str = "label"
    labels: Literal["same", "other"] = "same"

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Prevalences]:
        """Begin with no subject."""
        yield Prevalences(self)

    def live(self) -> Prevalences:
        """What takes records, for a program that has some."""
        return Prevalences(self)


class Prevalences:
    """Takes records, in memory that does not grow with them."""

    def __init__(self, options: Prevalence) -> None:
        self._options = options
        self._labelled, self._others, self._all = Moments(), Moments(), Moments()
        self._cells: dict[tuple[float, float | None], int] = {}
        self._is_binary = True

    def add(self, record: Record) -> None:
        """Take a record; one that the judge has not scored is passed over."""
        judged = score(record, self._options.on)
        if judged is None:
            return
        given: Any = lookup(record.get("row") or {}, self._options.label)
        is_number = given is not MISSING and isinstance(given, int | float) and not isinstance(given, bool)
        label = float(given) if is_number else None
        if label is not None and not 0 <= label <= 1:
            raise ValueError(f"the label {label!r} is not between 0 and 1")
        self._all.add(judged)
        if label is None:
            self._others.add(judged)
        else:
            self._labelled.add(judged, label)
        self._is_binary = self._is_binary and {judged, 0.0 if label is None else label} <= {0.0, 1.0}
        if self._is_binary:
            cell = (judged, label)
            self._cells[cell] = self._cells.get(cell, 0) + 1

    def finish(self) -> Mapping[str, object]:
        """What the labels come to."""
        population = self._all if self._options.labels == "same" else self._others
        told: dict[str, object] = {"n": int(population.count), "labels": int(self._labelled.count)}
        told["judge_mean"] = population.x if population.count else None
        if self._options.labels == "other":
            return {**_nothing(), **told, **self._rogan_gladen()}
        found = self._stratified() if self._is_binary else self._ppi()
        return {**_nothing(), **told, **found}

    def _count(self, judged: float, *labels: float | None) -> int:
        return sum(self._cells.get((judged, label), 0) for label in labels)

    def _stratified(self) -> dict[str, object]:
        strata: list[tuple[float, float, float]] = []
        for verdict in (1.0, 0.0):
            size, known = self._count(verdict, 0.0, 1.0, None), self._count(verdict, 0.0, 1.0)
            if size and not known:
                return {"reasons": [f"no subject that the judge gave {verdict:g} has a label"]}
            if size:
                strata.append((size, self._count(verdict, 1.0) / known, known))
        if self._labelled.count < LEAST_OF_TWO:
            return {"reasons": [f"too few labels: {int(self._labelled.count)}, it takes {LEAST_OF_TWO}"]}
        n = sum(size for size, _, _ in strata)
        low, high = combined_wilson(strata)
        mean = sum(size / n * rate for size, rate, _ in strata)
        return {"mean": mean, "ci_low": low, "ci_high": high, "method": "stratified-wilson"}

    def _ppi(self) -> dict[str, object]:
        """PPI++ for a mean (Angelopoulos, Duchi and Zrnic, 2023), with the weight of the scores as ppi-python has it, and Student's t."""
        labelled, others, n = self._labelled, self._others, self._labelled.count
        if n < 2:
            return {"reasons": [f"too few labels: {int(n)}, it takes 2"]}
        weight = 0.0
        if others.count and self._all.xx > 0:
            variance = self._all.xx / (self._all.count - 1)
            weight = min(1.0, max(0.0, labelled.xy / n / ((1 + n / others.count) * variance)))
        mean = weight * others.x + labelled.y - weight * labelled.x
        square = labelled.residual_squares(weight) / (n - 1) / n
        if others.count > 1:
            square += weight * weight * others.xx / (others.count - 1) / others.count
        from scipy.special import stdtrit  # type: ignore[import-untyped]

        half = float(stdtrit(n - 1, 0.975)) * math.sqrt(square)
        low, high = max(0.0, mean - half), min(1.0, mean + half)
        return {"mean": mean, "ci_low": low, "ci_high": high, "method": "ppi++", "lambda": weight}

    def _rogan_gladen(self) -> dict[str, object]:
        if not self._is_binary:
            return {
                "reasons": ["scores and labels are not all 0 or 1: labels of another population correct verdicts alone"]
            }
        right = {
            verdict: (self._count(verdict, verdict), self._count(1.0, verdict) + self._count(0.0, verdict))
            for verdict in (1.0, 0.0)
        }
        (hits, positives), (passes, negatives) = right[1.0], right[0.0]
        n = int(self._others.count)
        if not positives or not negatives or not n:
            lacking = "subjects without a label" if not n else f"labels of {0 if positives else 1}"
            return {"reasons": [f"there are no {lacking}"]}
        sensitivity, specificity = hits / positives, passes / negatives
        rates = {"sensitivity": sensitivity, "specificity": specificity}
        if sensitivity + specificity <= 1:
            return {
                **rates,
                "reasons": ["the judge is right no more often than by chance: sensitivity + specificity is 1 or less"],
            }
        found = rogan_gladen(self._others.x, n, (sensitivity, positives), (specificity, negatives))
        if found is None:
            too_few = f"too few labels ({positives} of 1, {negatives} of 0) to tell that the judge is right more often than by chance"
            return {**rates, "reasons": [too_few]}
        mean, low, high = found
        return {**rates, "mean": mean, "ci_low": low, "ci_high": high, "method": "rogan-gladen"}


def rogan_gladen(
    rate: float, n: int, sensitivity: tuple[float, int], specificity: tuple[float, int], z: float = Z
) -> tuple[float, float, float] | None:
    """The prevalence behind a *rate* of positive verdicts among *n*, and its interval; *sensitivity* and *specificity* with of how many each is known.

    W. J. Rogan and B. Gladen, American Journal of Epidemiology 107 (1978), 71-76; Z. Lang and J. Reiczigel, Preventive Veterinary Medicine 113
    (2014), 13-22. All three lie in [0, 1]: a rate that the judge's errors alone would give more of is a prevalence of 0.
    None where so few labels are known that both shares, with one more right and one more wrong answer each, are those of chance: there is no interval.
    """
    mean = (rate + specificity[0] - 1) / (sensitivity[0] + specificity[0] - 1)
    more, apparent = n + z * z, (n * rate + z * z / 2) / (n + z * z)
    hits, positives = (sensitivity[0] * sensitivity[1] + 1) / (sensitivity[1] + 2), sensitivity[1] + 2
    passes, negatives = (specificity[0] * specificity[1] + 1) / (specificity[1] + 2), specificity[1] + 2
    youden = hits + passes - 1
    if youden <= 0:
        return None
    middle = (apparent + passes - 1) / youden
    error_hits, error_passes = hits * (1 - hits) / positives, passes * (1 - passes) / negatives
    shift = 2 * z * z * (middle * error_hits - (1 - middle) * error_passes)
    square = apparent * (1 - apparent) / more + middle**2 * error_hits + (1 - middle) ** 2 * error_passes
    half = z * math.sqrt(square) / youden
    low, high = middle + shift - half, middle + shift + half
    return _in_bounds(mean), _in_bounds(low), _in_bounds(high)


def _in_bounds(value: float) -> float:
    return min(1.0, max(0.0, value))


def _nothing() -> dict[str, object]:
    names = ("mean", "ci_low", "ci_high", "method", "lambda", "sensitivity", "specificity")
    return {**dict.fromkeys(names), "reasons": []}
