"""What each of several changes has to do with a difference, where some combinations of them were judged.

Every combination of swapped factors is a cell with a mean score. The Shapley value of a factor (L. S. Shapley, "A value for n-person games", 1953) is the mean of what swapping it
changes, over all orders in which the factors may be swapped one after the other. The values of all factors add up to the whole difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import factorial
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[Any]

RESAMPLES = 2_000
_BATCH = 200

Cell = frozenset[str]
"""The factors that are swapped in it."""


@attrs.frozen
class Share:
    """What a factor changes: the mean over subjects, with its 95 % interval by resampling subjects.

    *value* is None where no two cells differ in this factor alone. *pairs* is how many do, *of* how many there could be; it is *exact* where all do.
    """

    value: float | None
    low: float | None
    high: float | None
    pairs: int
    of: int

    @property
    def exact(self) -> bool:
        """Whether every order of swaps is known."""
        return self.pairs == self.of


def every_cell(factors: Sequence[str]) -> list[Cell]:
    """All combinations, those of few swaps first."""
    return [frozenset(chosen) for size in range(len(factors) + 1) for chosen in combinations(factors, size)]


def shares(factors: Sequence[str], cells: Mapping[Cell, Numbers], seed: int = 0) -> dict[str, Share]:
    """The share of each of *factors*, by the scores of the same subjects in the *cells* there are.

    Where some pairs of cells are not there, those that are stand for them, with the same weights.
    """
    return {factor: _share(factor, factors, cells, seed) for factor in factors}


def _share(factor: str, factors: Sequence[str], cells: Mapping[Cell, Numbers], seed: int) -> Share:
    others = [one for one in factors if one != factor]
    pairs = [(cell, cell | {factor}) for cell in every_cell(others)]
    known = [(before, after) for before, after in pairs if before in cells and after in cells]
    if not known:
        return Share(None, None, None, 0, len(pairs))
    weights = [factorial(len(before)) * factorial(len(factors) - len(before) - 1) for before, _ in known]
    changes: Any = sum(
        (cells[after] - cells[before]) * (weight / sum(weights))
        for (before, after), weight in zip(known, weights, strict=True)
    )
    low, high = interval(changes, seed)
    return Share(float(changes.mean()), low, high, len(known), len(pairs))


def interval(changes: Any, seed: int) -> tuple[float | None, float | None]:
    """The 95 % interval of the mean of *changes*, a subject each, by the percentiles of resamples; None below two subjects."""
    import numpy as np

    count = len(changes)
    if count < 2:
        return None, None
    draw = np.random.default_rng(seed)
    means = [
        draw.multinomial(count, np.full(count, 1 / count), _BATCH) @ changes / count for _ in range(RESAMPLES // _BATCH)
    ]
    low, high = np.quantile(np.concatenate(means), [0.025, 0.975])
    return float(low), float(high)
