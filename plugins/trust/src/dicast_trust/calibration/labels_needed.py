"""How many labels a calibration is going to need: as a range, because the labels there are say only so much."""

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
"""Beyond so many labels nobody is told a number."""

GROWTH = 1.15
ENOUGH = 0.8
"""The share of calibrations that have to find a threshold."""

SHOWN = (0.2, 0.5, 0.8)

SEQUENTIAL = 1.7
"""So many times the labels of a test for a fixed number one needs that may be looked at after each of them."""


@attrs.frozen
class Needed:
    """How many labels in all are needed: the 20, 50 and 80 % quantiles, None above 6,000; *never* is the share for which none will do."""

    low: int | None
    mid: int | None
    high: int | None
    never: float

    def words(self, n: int, *, sessions: bool = False) -> str:
        """The range in words, where there are *n* labels already; never one number. With *sessions* each is to be of a session of its own."""
        none = f"none will do ({self.never:.0%})".replace("%", " %")
        if self.low is None:
            return none
        most, low = self.mid if self.high is None else self.high, max(0, self.low - n)
        many = f"at least {low:,}" if most is None else f"between {low:,} and {max(0, most - n):,}"
        text = f"{many} more labels{', each of a session of its own' if sessions else ''}"
        return text if not self.never else f"{text}; or {none}"


def least_n(
    shares: Numbers,
    errors: Numbers,
    test: RungTest,
    start: int,
    random: np.random.Generator,
    simulations: int = SIMULATIONS,
) -> int | None:
    """The least number of labels, from *start* on in steps of 15 %, with which 80 % of simulated calibrations find a threshold.

    :param shares: which share of labels lies in each bin, from the highest rung down; they add up to 1.
    :param errors: how often the stage is wrong there.
    :return: None where 6,000 do not do.
    """
    if _found(shares, errors, test, MOST, random, simulations) < ENOUGH:
        return None
    n = max(1, start)
    while n < MOST:
        if _found(shares, errors, test, n, random, simulations) >= ENOUGH:
            return n
        n = min(MOST, math.ceil(n * GROWTH))
    return MOST


def _found(
    shares: Numbers, errors: Numbers, test: RungTest, n: int, random: np.random.Generator, simulations: int
) -> float:
    """The share of simulated calibrations with *n* labels whose first rung passes."""
    import numpy as np

    counts = random.multinomial(n, shares / shares.sum(), simulations)
    wrong = random.binomial(counts, errors).cumsum(1)
    kept = counts.cumsum(1)
    enough = max(test.least, -(-START_SHARE * n // 10))
    reached = kept >= enough
    first = reached.argmax(1)
    rows = np.arange(simulations)
    good = passes(wrong[rows, first], kept[rows, first], test.risk, test.alpha) & reached.any(1)
    return float(good.mean())


def needed(counts: Sequence[int], errors: Sequence[int], test: RungTest, seed: int) -> Needed:
    """How many labels are needed, from *counts* of labels and of *errors* in the bins between rungs, from the highest down.

    What the bins are like is drawn 40 times from what the labels leave open: shares from a Dirichlet distribution, error rates from Beta
    distributions around the rate of all.
    """
    import numpy as np

    random, more = np.random.default_rng(seed), SEQUENTIAL if test.method == "sequential" else 1.0
    n_b, k_b = np.asarray(counts, float), np.asarray(errors, float)
    n, k = int(n_b.sum()), float(k_b.sum())
    prior = (k + 0.5) / (n + 1)
    found: list[float] = []
    for _ in range(DRAWS):
        shares = random.dirichlet(n_b + 0.5)
        rates = random.beta(k_b + prior, n_b - k_b + 1 - prior)
        one = least_n(shares, rates, test, max(n, 1), random)
        found.append(math.inf if one is None or one * more > MOST else math.ceil(one * more))
    found.sort()
    low, mid, high = (found[math.ceil(share * DRAWS) - 1] for share in SHOWN)
    return Needed(_number(low), _number(mid), _number(high), sum(map(math.isinf, found)) / DRAWS)


def _number(found: float) -> int | None:
    return None if math.isinf(found) else int(found)
