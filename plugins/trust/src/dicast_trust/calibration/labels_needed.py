"""Forecast of the number of labels that a calibration needs, as a range, because the present labels leave it uncertain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from ..statistics.binomial import passes
from .ladder import START_SHARE, RungTest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[Any]

DRAWS, SIMULATIONS = 40, 200
MOST = 6_000
"""Greatest number of labels to report; above it the number is null."""

GROWTH = 1.15
ENOUGH = 0.8
"""Share of simulated calibrations that has to find a threshold."""

QUANTILES = (0.2, 0.5, 0.8)

SEQUENTIAL = 1.7
"""Labels of the sequential test, as a multiple of the labels of the fixed test."""


@attrs.frozen
class Needed:
    """Total number of labels needed: the 20, 50 and 80 % quantiles, None above 6,000.

    *never* is the share of draws for which no number is enough.
    """

    low: int | None
    mid: int | None
    high: int | None
    never: float

    def words(self, n: int, *, sessions: bool = False) -> str:
        """Return the range of further labels in words, with *n* labels at present; never one number. With *sessions* each label needs a different session."""
        no_number = f"no number is enough ({self.never:.0%})".replace("%", " %")
        if self.low is None:
            return no_number
        most, low = self.mid if self.high is None else self.high, max(0, self.low - n)
        count = f"at least {low:,}" if most is None else f"between {low:,} and {max(0, most - n):,}"
        text = f"{count} more labels{', each of a different session' if sessions else ''}"
        return text if not self.never else f"{text}; or {no_number}"


def least_n(
    shares: Numbers,
    errors: Numbers,
    test: RungTest,
    start: int,
    random: np.random.Generator,
    simulations: int = SIMULATIONS,
) -> int | None:
    """Return the least number of labels, from *start* on in steps of 15 %, with which 80 % of simulated calibrations find a threshold.

    :param shares: the share of labels in each bin, from the highest rung down; they add up to 1.
    :param errors: the error rate of the stage in each bin.
    :return: None if 6,000 labels are not enough.
    """
    if _success_rate(shares, errors, test, MOST, random, simulations) < ENOUGH:
        return None
    n = max(1, start)
    while n < MOST:
        if _success_rate(shares, errors, test, n, random, simulations) >= ENOUGH:
            return n
        n = min(MOST, math.ceil(n * GROWTH))
    return MOST


def _success_rate(
    shares: Numbers, errors: Numbers, test: RungTest, n: int, random: np.random.Generator, simulations: int
) -> float:
    """Return the share of simulated calibrations with *n* labels whose first rung passes."""
    import numpy as np

    counts = random.multinomial(n, shares / shares.sum(), simulations)
    errors_above = random.binomial(counts, errors).cumsum(1)
    labels = counts.cumsum(1)
    enough = max(test.least, -(-START_SHARE * n // 10))
    reached = labels >= enough
    first = reached.argmax(1)
    rows = np.arange(simulations)
    good = passes(errors_above[rows, first], labels[rows, first], test.risk, test.alpha) & reached.any(1)
    return float(good.mean())


def needed(counts: Sequence[int], errors: Sequence[int], test: RungTest, seed: int) -> Needed:
    """Return the number of labels needed, from the *counts* of labels and of *errors* in the bins between rungs, from the highest down.

    Shares and error rates of the bins are uncertain, so they are drawn 40 times: shares from a Dirichlet distribution, error rates from Beta
    distributions around the overall rate.
    """
    import numpy as np

    random, factor = np.random.default_rng(seed), SEQUENTIAL if test.method == "sequential" else 1.0
    n_b, k_b = np.asarray(counts, float), np.asarray(errors, float)
    n, k = int(n_b.sum()), float(k_b.sum())
    prior = (k + 0.5) / (n + 1)
    totals: list[float] = []
    for _ in range(DRAWS):
        shares = random.dirichlet(n_b + 0.5)
        rates = random.beta(k_b + prior, n_b - k_b + 1 - prior)
        least = least_n(shares, rates, test, max(n, 1), random)
        totals.append(math.inf if least is None or least * factor > MOST else math.ceil(least * factor))
    totals.sort()
    low, mid, high = (totals[math.ceil(share * DRAWS) - 1] for share in QUANTILES)
    return Needed(_number(low), _number(mid), _number(high), sum(map(math.isinf, totals)) / DRAWS)


def _number(value: float) -> int | None:
    return None if math.isinf(value) else int(value)
