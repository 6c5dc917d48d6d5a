"""Where to set a threshold so that what lies above it is wrong at most so often: fixed-sequence testing down a ladder of thresholds."""

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
"""Up to so many different signals each one is a rung; above it the rungs are quantiles."""

START_SHARE = 3
"""Tenths of the labels that the first rung tested has to keep."""


@attrs.frozen
class Labelled:
    """The labels that one step learns from, in the order in which they were given.

    *signals* are what the stage said of each, *errors* 1 where it disagreed with the label and 0 where not, *sessions* the number of each
    one's session.
    """

    signals: Numbers
    errors: Numbers
    sessions: Numbers

    @property
    def n(self) -> int:
        """How many there are."""
        return len(self.errors)

    @property
    def repeated(self) -> bool:
        """Whether a session has two of them."""
        return len(set(self.sessions.tolist())) < self.n

    @property
    def alike_sessions(self) -> float:
        """How many sessions of one size would weigh as these do: the square of the labels over the sum of the squares of each session's (L. Kish, 1965)."""
        import numpy as np

        sizes = np.unique(self.sessions, return_counts=True)[1]
        return float(sizes.sum() ** 2 / (sizes**2).sum())


@attrs.frozen
class Rung:
    """A threshold with the labels at or above it, and their errors. *passed* is None where it was not tested."""

    threshold: float
    n: int
    errors: int
    upper: float | None
    passed: bool | None = None


@attrs.frozen
class Climb:
    """Result of testing down the ladder.

    *threshold* is the signal of the lowest labeled subject at the last rung that passed, None where no rung passed; *chosen* is that rung.
    """

    threshold: float | None
    rungs: tuple[Rung, ...]
    chosen: Rung | None = None


@attrs.frozen
class RungTest:
    """How rungs are tested: *risk* is 1 minus the target, *alpha* the probability that the threshold is wrong."""

    risk: float
    alpha: float
    method: Method = "exact"

    @property
    def least(self) -> int:
        """The least number of labels with which a rung can pass."""
        return least_labels(self.risk, self.alpha)

    def rung(self, labelled: Labelled, threshold: float) -> Rung:
        """What the labels at or above *threshold* say; nothing is decided yet."""
        kept = labelled.signals >= threshold
        n, errors = int(kept.sum()), int(labelled.errors[kept].sum())
        if self.method == "korn-graubard":
            bound = clustered_upper(labelled.errors[kept], labelled.sessions[kept], self.alpha)
        else:
            bound = upper(errors, n, self.alpha) if n else None
        return Rung(threshold, n, errors, bound)

    def decided(self, rung: Rung, labelled: Labelled) -> Rung:
        """*rung* with the test's answer."""
        if self.method == "exact":
            return attrs.evolve(rung, passed=bool(passes(rung.errors, rung.n, self.risk, self.alpha)))
        if self.method == "korn-graubard":
            return attrs.evolve(rung, passed=rung.upper is not None and rung.upper <= self.risk)
        wrong = labelled.errors[labelled.signals >= rung.threshold]
        return attrs.evolve(
            rung, upper=_running_upper(wrong, self.alpha), passed=_evidence(wrong, self.risk) >= -math.log(self.alpha)
        )


def thresholds(signals: Numbers, quantiles: Sequence[float] | None = None) -> list[float]:
    """The rungs for *signals*, those of all subjects, labelled or not, from the highest down.

    Each different signal is one; above 50 of them, or where *quantiles* are given, the quantiles 0, .02 … .98 of all.
    """
    import numpy as np

    different = np.unique(signals)
    if quantiles is not None or len(different) > MOST_RUNGS:
        at = np.arange(MOST_RUNGS) / MOST_RUNGS if quantiles is None else np.asarray(quantiles)
        different = np.unique(np.quantile(signals, at))
    return [float(one) for one in different[::-1]]


def first_rung(rungs: Sequence[Rung], labels: int, least: int) -> int:
    """The number of the first rung to test: one with enough labels, that is *least* and three tenths of all; past the end, none."""
    enough = max(least, -(-START_SHARE * labels // 10))
    return next((index for index, rung in enumerate(rungs) if rung.n >= enough), len(rungs))


def climb(labelled: Labelled, at: Sequence[float], test: RungTest, start: float | None = None) -> Climb:
    """Test the rungs *at* from the first that has enough labels on down, and stop at the first that fails.

    A rung that adds no label to the rung tested before it is skipped: it neither passes nor stops the search. The threshold is the signal of the lowest
    labeled subject at the last rung that passed, so no level without a label is ever certified. Each rung is tested at the whole alpha, and the probability that the threshold keeps errors too often is alpha at most (Angelopoulos,
    Bates, Candès, Jordan and Lei 2021, Learn then Test: fixed-sequence testing).

    :param start: the threshold to start at, where that is not for the labels to say.
    """
    rungs = [test.rung(labelled, threshold) for threshold in at]
    first = first_rung(rungs, labelled.n, test.least)
    if start is not None:
        first = next((index for index, threshold in enumerate(at) if threshold <= start), len(at))
    chosen: Rung | None = None
    tested = 0
    for index in range(first, len(rungs)):
        if rungs[index].n == tested:
            continue  # the rung adds no label, so the labels say nothing about the subjects that it adds
        rungs[index] = test.decided(rungs[index], labelled)
        if not rungs[index].passed:
            break
        chosen, tested = rungs[index], rungs[index].n
    if chosen is None:
        return Climb(None, tuple(rungs))
    lowest = float(labelled.signals[labelled.signals >= chosen.threshold].min())
    return Climb(lowest, tuple(rungs), chosen)


def sequential_start(at: Sequence[float], unlabelled: Numbers) -> float | None:
    """The first threshold at which three tenths of the *unlabelled* are kept: labels have no say in it."""
    for threshold in at:
        if len(unlabelled) and 10 * int((unlabelled >= threshold).sum()) >= START_SHARE * len(unlabelled):
            return threshold
    return None


def _peaks(errors: Numbers) -> tuple[Numbers, Numbers]:
    """Errors and labels so far wherever the evidence is at a peak: before each error, and at the end."""
    import numpy as np

    at = np.append(np.flatnonzero(errors), len(errors))
    return np.append(np.arange(len(at) - 1), int(errors.sum())), at


def _evidence(errors: Numbers, risk: float) -> float:
    """The most evidence there was after any label, as a logarithm, that errors are rarer than *risk*."""
    k, n = _peaks(errors)
    return float(ln_below(k, n, risk).max())


def _running_upper(errors: Numbers, alpha: float) -> float:
    """The least error rate that the evidence refutes, after any label: an upper bound that may be looked at all the time."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if _evidence(errors, middle) >= -math.log(alpha) else (middle, high)
    return high
