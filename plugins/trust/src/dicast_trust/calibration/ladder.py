"""Fixed-sequence testing down a ladder of thresholds, for the lowest threshold with a bounded error rate above it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import attrs

from ..statistics.binomial import clustered_upper, least_labels, passes, upper
from ..statistics.e_process import ln_below

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[Any]

Method = Literal["exact", "korn-graubard", "sequential"]

MOST_RUNGS = 50
"""Greatest number of rungs: with more different signals the rungs are quantiles."""

START_SHARE = 3
"""Tenths of the labels that the first tested rung has at least."""


@attrs.frozen
class LabeledSignals:
    """Labels that one step learns from, in the order of recording.

    Each array has one entry per label: the stage's signal; 1 as the error if verdict and label disagree, else 0; and the number of the session.
    """

    signals: Numbers
    errors: Numbers
    sessions: Numbers

    @property
    def n(self) -> int:
        """Number of labels."""
        return len(self.errors)

    @property
    def has_repeats(self) -> bool:
        """Return whether a session has two labels."""
        return len(set(self.sessions.tolist())) < self.n

    @property
    def effective_sessions(self) -> float:
        """Number of sessions of equal size with the same weight.

        It is the square of the labels over the sum of the squares of each session's labels (L. Kish, 1965).
        """
        import numpy as np

        sizes = np.unique(self.sessions, return_counts=True)[1]
        return float(sizes.sum() ** 2 / (sizes**2).sum())


@attrs.frozen
class Rung:
    """Threshold with the labels at or above it, and their errors. *passed* is None if the rung was not tested."""

    threshold: float
    n: int
    errors: int
    upper: float | None
    passed: bool | None = None


@attrs.frozen
class Climb:
    """Result of testing down the ladder.

    *threshold* is the signal of the lowest labeled subject at the last rung that passed, None if no rung passed; *chosen* is that rung.
    """

    threshold: float | None
    rungs: tuple[Rung, ...]
    chosen: Rung | None = None


@attrs.frozen
class RungTest:
    """Test of a rung: *risk* is 1 minus the target, *alpha* the probability that the threshold is wrong."""

    risk: float
    alpha: float
    method: Method = "exact"

    @property
    def least(self) -> int:
        """Least number of labels with which a rung can pass."""
        return least_labels(self.risk, self.alpha)

    def rung(self, labeled: LabeledSignals, threshold: float) -> Rung:
        """Return the rung at *threshold* with its labels, errors and bound, untested."""
        is_kept = labeled.signals >= threshold
        n, errors = int(is_kept.sum()), int(labeled.errors[is_kept].sum())
        if self.method == "korn-graubard":
            bound = clustered_upper(labeled.errors[is_kept], labeled.sessions[is_kept], self.alpha)
        else:
            bound = upper(errors, n, self.alpha) if n else None
        return Rung(threshold, n, errors, bound)

    def decided(self, rung: Rung, labeled: LabeledSignals) -> Rung:
        """Return *rung* with the result of the test."""
        if self.method == "exact":
            return attrs.evolve(rung, passed=bool(passes(rung.errors, rung.n, self.risk, self.alpha)))
        if self.method == "korn-graubard":
            return attrs.evolve(rung, passed=rung.upper is not None and rung.upper <= self.risk)
        errors = labeled.errors[labeled.signals >= rung.threshold]
        return attrs.evolve(
            rung, upper=_running_upper(errors, self.alpha), passed=_evidence(errors, self.risk) >= -math.log(self.alpha)
        )


def thresholds(signals: Numbers, quantiles: Sequence[float] | None = None) -> list[float]:
    """Return the rungs for *signals* of all subjects, labeled or not, from the highest down.

    Each different signal is a rung. Above 50 of them, or with *quantiles*, the rungs are quantiles of all signals: 0, .02 … .98, or *quantiles*.
    """
    import numpy as np

    different = np.unique(signals)
    if quantiles is not None or len(different) > MOST_RUNGS:
        at = np.arange(MOST_RUNGS) / MOST_RUNGS if quantiles is None else np.asarray(quantiles)
        different = np.unique(np.quantile(signals, at))
    return [float(signal) for signal in different[::-1]]


def first_rung(rungs: Sequence[Rung], labels: int, least: int) -> int:
    """Return the index of the first rung to test, or the number of rungs if no rung can be tested.

    It is the first rung with at least *least* labels that has three tenths of all *labels* or more.
    """
    enough = max(least, -(-START_SHARE * labels // 10))
    return next((index for index, rung in enumerate(rungs) if rung.n >= enough), len(rungs))


def climb(labeled: LabeledSignals, at: Sequence[float], test: RungTest, start: float | None = None) -> Climb:
    """Test the rungs *at* from the first that has enough labels downwards, and stop at the first that fails.

    A rung that adds no label to the rung tested before it is skipped: it neither passes nor stops the search. The threshold is the signal of the lowest
    labeled subject at the last rung that passed, so no level without a label is ever certified. Each rung is tested at the whole alpha, and the probability
    that kept verdicts are wrong more often than *risk* is at most alpha (Angelopoulos, Bates, Candès, Jordan and Lei 2021, Learn then Test:
    fixed-sequence testing).

    :param start: the threshold to start at, if it does not depend on the labels.
    """
    rungs = [test.rung(labeled, threshold) for threshold in at]
    first = first_rung(rungs, labeled.n, test.least)
    if start is not None:
        first = next((index for index, threshold in enumerate(at) if threshold <= start), len(at))
    chosen: Rung | None = None
    tested = 0
    for index in range(first, len(rungs)):
        if rungs[index].n == tested:
            continue  # the rung adds no label, so there is no evidence about the subjects that it adds
        rungs[index] = test.decided(rungs[index], labeled)
        if not rungs[index].passed:
            break
        chosen, tested = rungs[index], rungs[index].n
    if chosen is None:
        return Climb(None, tuple(rungs))
    lowest = float(labeled.signals[labeled.signals >= chosen.threshold].min())
    return Climb(lowest, tuple(rungs), chosen)


def sequential_start(at: Sequence[float], unlabeled: Numbers) -> float | None:
    """Return the first threshold at which three tenths of the *unlabeled* are kept: it does not depend on the labels."""
    for threshold in at:
        if len(unlabeled) and 10 * int((unlabeled >= threshold).sum()) >= START_SHARE * len(unlabeled):
            return threshold
    return None


def _peaks(errors: Numbers) -> tuple[Numbers, Numbers]:
    """Return the numbers of errors and of labels so far at each possible peak of the evidence: before each error, and at the end."""
    import numpy as np

    at = np.append(np.flatnonzero(errors), len(errors))
    return np.append(np.arange(len(at) - 1), int(errors.sum())), at


def _evidence(errors: Numbers, risk: float) -> float:
    """Return the greatest evidence after any label, as a logarithm, that errors are rarer than *risk*."""
    k, n = _peaks(errors)
    return float(ln_below(k, n, risk).max())


def _running_upper(errors: Numbers, alpha: float) -> float:
    """Return the least error rate that the evidence refutes after any label: an upper bound that holds at any time."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if _evidence(errors, middle) >= -math.log(alpha) else (middle, high)
    return high
