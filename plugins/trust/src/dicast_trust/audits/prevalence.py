"""``trust/prevalence``: the mean of a gold standard over all subjects, from labels of some and a judge's scores of all."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal

import attrs

from dicast import ALL_METRICS, Record, RunContext
from dicast.toolkit.intervals import Z_95
from dicast.toolkit.json_values import MISSING, lookup

from ..statistics.moments import Moments
from ..stopping.anytime import score
from .corrected import combined_wilson
from .strata import LEAST_OF_TWO


@attrs.frozen
class Prevalence:
    """Mean of labels over all subjects, from labels of some and a judge's scores of all: the judge's mean without its bias.

    If scores and labels are 0 or 1, the judge's verdicts are strata, and labels may be drawn at different rates in each (``stratified-wilson``). Other scores
    are used as far as they correlate with the labels (``ppi++``). Labels of another population measure how often the judge is right, which corrects its
    rate among the subjects without labels (``rogan-gladen``); this is refused if the judge is right no more often than by chance. The result is ``{mean, ci_low,
    ci_high, method, n, labels, judge_mean, lambda, sensitivity, specificity, reasons}``. Labels have to be drawn at random.

    :param on: the label of the metric or judge; ``metrics`` is the combined score.
    :param label: the dotted path of the gold standard in a record's row; a subject without a number there is not labeled. Rows are
        in the records that a task or an extractor makes.
    :param labels: ``same``: the labeled subjects belong to the population of the mean; ``other``: they do not.
    """

    name = "prevalence"

    on: str = ALL_METRICS
    label: str = "label"
    labels: Literal["same", "other"] = "same"

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Prevalences]:
        """Yield a collector without records."""
        yield Prevalences(self)

    def live(self) -> Prevalences:
        """Return an object that takes records from a program."""
        return Prevalences(self)


class Prevalences:
    """Collector of records, in memory that does not grow with them."""

    def __init__(self, options: Prevalence) -> None:
        self._options = options
        self._labeled, self._unlabeled, self._all = Moments(), Moments(), Moments()
        self._cells: dict[tuple[float, float | None], int] = {}
        self._is_binary = True

    def add(self, record: Record) -> None:
        """Add a record; a record without the judge's score is skipped."""
        judged = score(record, self._options.on)
        if judged is None:
            return
        value: Any = lookup(record.get("row") or {}, self._options.label)
        is_number = value is not MISSING and isinstance(value, int | float) and not isinstance(value, bool)
        label = float(value) if is_number else None
        if label is not None and not 0 <= label <= 1:
            raise ValueError(f"the label {label!r} is not between 0 and 1")
        self._all.add(judged)
        if label is None:
            self._unlabeled.add(judged)
        else:
            self._labeled.add(judged, label)
        self._is_binary = self._is_binary and {judged, 0.0 if label is None else label} <= {0.0, 1.0}
        if self._is_binary:
            cell = (judged, label)
            self._cells[cell] = self._cells.get(cell, 0) + 1

    def finish(self) -> Mapping[str, object]:
        """Return the estimate as JSON data."""
        population = self._all if self._options.labels == "same" else self._unlabeled
        counts: dict[str, object] = {"n": int(population.count), "labels": int(self._labeled.count)}
        counts["judge_mean"] = population.x if population.count else None
        if self._options.labels == "other":
            return {**_empty_estimate(), **counts, **self._rogan_gladen()}
        estimate = self._stratified() if self._is_binary else self._ppi()
        return {**_empty_estimate(), **counts, **estimate}

    def _count(self, judged: float, *labels: float | None) -> int:
        return sum(self._cells.get((judged, label), 0) for label in labels)

    def _stratified(self) -> dict[str, object]:
        strata: list[tuple[float, float, float]] = []
        for verdict in (1.0, 0.0):
            size, labels = self._count(verdict, 0.0, 1.0, None), self._count(verdict, 0.0, 1.0)
            if size and not labels:
                return {"reasons": [f"no subject with the verdict {verdict:g} has a label"]}
            if size:
                strata.append((size, self._count(verdict, 1.0) / labels, labels))
        if self._labeled.count < LEAST_OF_TWO:
            return {"reasons": [f"too few labels: {int(self._labeled.count)}, at least {LEAST_OF_TWO} are needed"]}
        n = sum(size for size, _, _ in strata)
        low, high = combined_wilson(strata)
        mean = sum(size / n * rate for size, rate, _ in strata)
        return {"mean": mean, "ci_low": low, "ci_high": high, "method": "stratified-wilson"}

    def _ppi(self) -> dict[str, object]:
        """Return the PPI++ estimate of a mean (Angelopoulos, Duchi and Zrnic, 2023), with the weight of the scores as in ppi-python, and Student's t."""
        labeled, unlabeled, n = self._labeled, self._unlabeled, self._labeled.count
        if n < 2:
            return {"reasons": [f"too few labels: {int(n)}, at least 2 are needed"]}
        weight = 0.0
        if unlabeled.count and self._all.xx > 0:
            variance = self._all.xx / (self._all.count - 1)
            weight = min(1.0, max(0.0, labeled.xy / n / ((1 + n / unlabeled.count) * variance)))
        mean = weight * unlabeled.x + labeled.y - weight * labeled.x
        square = labeled.residual_squares(weight) / (n - 1) / n
        if unlabeled.count > 1:
            square += weight * weight * unlabeled.xx / (unlabeled.count - 1) / unlabeled.count
        from scipy.special import stdtrit  # type: ignore[import-untyped]

        half = float(stdtrit(n - 1, 0.975)) * math.sqrt(square)
        low, high = max(0.0, mean - half), min(1.0, mean + half)
        return {"mean": mean, "ci_low": low, "ci_high": high, "method": "ppi++", "lambda": weight}

    def _rogan_gladen(self) -> dict[str, object]:
        if not self._is_binary:
            return {
                "reasons": [
                    "scores and labels are not all 0 or 1: labels of another population correct only verdicts of 0 or 1"
                ]
            }
        counts = {
            verdict: (self._count(verdict, verdict), self._count(1.0, verdict) + self._count(0.0, verdict))
            for verdict in (1.0, 0.0)
        }
        (hits, positives), (passes, negatives) = counts[1.0], counts[0.0]
        n = int(self._unlabeled.count)
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
        estimate = rogan_gladen(self._unlabeled.x, n, (sensitivity, positives), (specificity, negatives))
        if estimate is None:
            too_few = f"too few labels ({positives} of 1, {negatives} of 0) to show that the judge is right more often than by chance"
            return {**rates, "reasons": [too_few]}
        mean, low, high = estimate
        return {**rates, "mean": mean, "ci_low": low, "ci_high": high, "method": "rogan-gladen"}


def rogan_gladen(
    rate: float, n: int, sensitivity: tuple[float, int], specificity: tuple[float, int], z: float = Z_95
) -> tuple[float, float, float] | None:
    """Return the prevalence behind a *rate* of positive verdicts among *n*, and its interval.

    :param sensitivity: the share, and the number of labels that it is from; *specificity* likewise.
    :return: all three in [0, 1]: if the judge's errors alone explain more than the rate, the prevalence is 0. None if labels are too few for an
        interval: both shares, with one more right and one more wrong answer each, are no better than chance.

    W. J. Rogan and B. Gladen, American Journal of Epidemiology 107 (1978), 71-76; Z_95. Lang and J. Reiczigel, Preventive Veterinary Medicine 113
    (2014), 13-22.
    """
    mean = (rate + specificity[0] - 1) / (sensitivity[0] + specificity[0] - 1)
    adjusted_n, apparent = n + z * z, (n * rate + z * z / 2) / (n + z * z)
    hits, positives = (sensitivity[0] * sensitivity[1] + 1) / (sensitivity[1] + 2), sensitivity[1] + 2
    passes, negatives = (specificity[0] * specificity[1] + 1) / (specificity[1] + 2), specificity[1] + 2
    youden = hits + passes - 1
    if youden <= 0:
        return None
    middle = (apparent + passes - 1) / youden
    error_hits, error_passes = hits * (1 - hits) / positives, passes * (1 - passes) / negatives
    shift = 2 * z * z * (middle * error_hits - (1 - middle) * error_passes)
    square = apparent * (1 - apparent) / adjusted_n + middle**2 * error_hits + (1 - middle) ** 2 * error_passes
    half = z * math.sqrt(square) / youden
    low, high = middle + shift - half, middle + shift + half
    return _in_bounds(mean), _in_bounds(low), _in_bounds(high)


def _in_bounds(value: float) -> float:
    return min(1.0, max(0.0, value))


def _empty_estimate() -> dict[str, object]:
    names = ("mean", "ci_low", "ci_high", "method", "lambda", "sensitivity", "specificity")
    return {**dict.fromkeys(names), "reasons": []}
