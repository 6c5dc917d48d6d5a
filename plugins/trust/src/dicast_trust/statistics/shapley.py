"""Shapley values: the share of a difference that each of several changes causes, from the combinations of changes that were judged.

Every combination of swapped factors is a cell with a mean score. The Shapley value of a factor (L. S. Shapley, "A value for n-person games", 1953) is the mean effect of
swapping it, over all orders in which the factors may be swapped one after the other. The values of all factors add up to the whole difference.
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
"""Swapped factors."""


@attrs.frozen
class Share:
    """Effect of a factor: the mean over subjects, with its 95 % interval by resampling subjects.

    *pairs* is the number of pairs of cells that differ in this factor alone, *of* the number of possible pairs. *value* is None without a pair.
    """

    value: float | None
    low: float | None
    high: float | None
    pairs: int
    of: int

    @property
    def is_exact(self) -> bool:
        """Return whether every order of swaps is known."""
        return self.pairs == self.of


def every_cell(factors: Sequence[str]) -> list[Cell]:
    """Return all combinations of *factors*, in ascending order of size."""
    return [frozenset(cell) for size in range(len(factors) + 1) for cell in combinations(factors, size)]


def shares(factors: Sequence[str], cells: Mapping[Cell, Numbers], seed: int = 0) -> dict[str, Share]:
    """Return the share of each of *factors*, by the scores of the same subjects in *cells*.

    If some pairs of cells are missing, the present pairs replace them, with the same weights.
    """
    return {factor: _share(factor, factors, cells, seed) for factor in factors}


def _share(factor: str, factors: Sequence[str], cells: Mapping[Cell, Numbers], seed: int) -> Share:
    rest = [name for name in factors if name != factor]
    pairs = [(cell, cell | {factor}) for cell in every_cell(rest)]
    present = [(before, after) for before, after in pairs if before in cells and after in cells]
    if not present:
        return Share(None, None, None, 0, len(pairs))
    weights = [factorial(len(before)) * factorial(len(factors) - len(before) - 1) for before, _ in present]
    changes: Any = sum(
        (cells[after] - cells[before]) * (weight / sum(weights))
        for (before, after), weight in zip(present, weights, strict=True)
    )
    low, high = interval(changes, seed)
    return Share(float(changes.mean()), low, high, len(present), len(pairs))


def interval(changes: Any, seed: int) -> tuple[float | None, float | None]:
    """Return the 95 % interval of the mean of *changes* (one value a subject) by the percentiles of resamples; None below two subjects."""
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
