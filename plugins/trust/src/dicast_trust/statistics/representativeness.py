"""Test of whether labeled subjects were drawn from the ledger with equal chances, by their signals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[Any]

PERMUTATIONS = 9_999

LEVEL = 0.01
"""The labels count as not drawn from the ledger below this p-value."""


@attrs.frozen
class Difference:
    """Greatest difference, over the rungs, between the shares of labeled and of all subjects at or above a rung.

    *p_value* is (1 + permutations with at least this difference) / (1 + permutations made).
    """

    greatest: float
    p_value: float

    @property
    def is_significant(self) -> bool:
        """Whether the labels were hardly drawn from these subjects."""
        return self.p_value < LEVEL

    def document(self) -> dict[str, float]:
        """Return the difference as JSON data."""
        return {"greatest_difference": self.greatest, "p_value": self.p_value}


def label_difference(
    signals: Numbers, is_labeled: Numbers, rungs: Sequence[float], groups: Sequence[str], seed: int
) -> Difference | None:
    """Compare the signals of labeled subjects with those of all subjects of the ledger.

    The p-value is of 9,999 permutations of which subjects are labeled, keyed by *seed*. Where a session has several labels whole sessions are
    permuted, and as many subjects of each drawn session count as have labels, because subjects of one session resemble each other.

    :param signals: one signal for each subject, labeled or not.
    :param is_labeled: whether each subject has a label.
    :param groups: the session of each subject, or a name of its own.
    :return: None where no subject, or every subject, has a label.
    """
    import numpy as np

    labeled = np.asarray(is_labeled, bool)
    if not labeled.any() or labeled.all():
        return None
    ascending = np.asarray(sorted(rungs), float)
    bins = np.searchsorted(ascending, signals, side="right")
    size = len(ascending) + 1
    everyone = np.bincount(bins, minlength=size)
    greatest = float(_differences(np.bincount(bins[labeled], minlength=size)[None, :], everyone)[0])
    random = np.random.default_rng(seed)
    members = np.unique(np.asarray(groups), return_inverse=True)[1]
    sizes = np.bincount(members[labeled])
    if sizes.max() > 1:
        count = _session_permutations(bins, members, labeled, everyone, greatest, random)
    else:
        drawn = random.multivariate_hypergeometric(everyone, int(labeled.sum()), PERMUTATIONS, method="marginals")
        count = int((_differences(drawn, everyone) >= greatest - 1e-12).sum())
    return Difference(greatest, (1 + count) / (1 + PERMUTATIONS))


def _differences(counts: Numbers, everyone: Numbers) -> Numbers:
    """Return the greatest difference to the shares of *everyone*, for each row of *counts* by bin."""
    import numpy as np

    shares = counts.cumsum(1) / counts.sum(1, keepdims=True)
    found: Numbers = np.abs(shares - everyone.cumsum() / everyone.sum()).max(1)
    return found


def _session_permutations(
    bins: Numbers, members: Numbers, labeled: Numbers, everyone: Numbers, greatest: float, random: np.random.Generator
) -> int:
    """Return the number of permutations of sessions with a difference of *greatest* at least.

    Stops once the number alone decides that the p-value is not below :data:`LEVEL`; the count is then a lower bound.
    """
    import numpy as np

    order = np.argsort(members, kind="stable")
    sizes = np.bincount(members)
    starts = np.concatenate([[0], sizes.cumsum()[:-1]])
    wanted = np.bincount(members[labeled], minlength=len(sizes))
    wanted = wanted[wanted > 0]
    enough, count = int(LEVEL * (1 + PERMUTATIONS)), 0
    for _ in range(PERMUTATIONS):
        chosen = random.permutation(len(sizes))[: len(wanted)]
        own = sizes[chosen]
        slots = np.repeat(np.arange(len(chosen)), own)
        firsts = np.concatenate([[0], own.cumsum()[:-1]])
        subjects = order[starts[chosen][slots] + np.arange(len(slots)) - firsts[slots]]
        shuffled = np.lexsort((random.random(len(slots)), slots))
        rank = np.arange(len(slots)) - firsts[slots]
        drawn = np.bincount(bins[subjects[shuffled[rank < wanted[slots]]]], minlength=len(everyone))
        count += bool(_differences(drawn[None, :], everyone)[0] >= greatest - 1e-12)
        if count >= enough:
            break
    return count
