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
"""P-value below which the labels count as not drawn at random from the ledger."""


@attrs.frozen
class Difference:
    """Greatest difference, over the rungs, between the shares of labeled and of all subjects at or above a rung.

    *p_value* is (1 + permutations with at least this difference) / (1 + permutations).
    """

    greatest: float
    p_value: float

    @property
    def is_significant(self) -> bool:
        """Return whether the labels are unlikely to be a random draw from these subjects."""
        return self.p_value < LEVEL

    def document(self) -> dict[str, float]:
        """Return the difference as JSON data."""
        return {"greatest_difference": self.greatest, "p_value": self.p_value}


def label_difference(
    signals: Numbers, is_labeled: Numbers, rungs: Sequence[float], groups: Sequence[str], seed: int
) -> Difference | None:
    """Compare the signals of labeled subjects with the signals of all subjects of the ledger.

    The p-value is from 9,999 permutations of the labels, keyed by *seed*. If a session has several labels, whole sessions are permuted, and each
    drawn session counts with as many subjects as the replaced session has labels, because subjects of one session resemble each other.

    :param signals: one signal for each subject, labeled or not.
    :param is_labeled: whether each subject has a label.
    :param groups: the session of each subject, or a name unique to the subject.
    :return: None if no subject, or every subject, has a label.
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
        samples = random.multivariate_hypergeometric(everyone, int(labeled.sum()), PERMUTATIONS, method="marginals")
        count = int((_differences(samples, everyone) >= greatest - 1e-12).sum())
    return Difference(greatest, (1 + count) / (1 + PERMUTATIONS))


def _differences(counts: Numbers, everyone: Numbers) -> Numbers:
    """Return the greatest difference to the shares of *everyone*, for each row of *counts* by bin."""
    import numpy as np

    shares = counts.cumsum(1) / counts.sum(1, keepdims=True)
    greatest: Numbers = np.abs(shares - everyone.cumsum() / everyone.sum()).max(1)
    return greatest


def _session_permutations(
    bins: Numbers, members: Numbers, labeled: Numbers, everyone: Numbers, greatest: float, random: np.random.Generator
) -> int:
    """Return the number of permutations of sessions with a difference of at least *greatest*.

    Stops once the count proves that the p-value is at least :data:`LEVEL`; the count is then a lower bound.
    """
    import numpy as np

    order = np.argsort(members, kind="stable")
    sizes = np.bincount(members)
    starts = np.concatenate([[0], sizes.cumsum()[:-1]])
    sizes_labeled = np.bincount(members[labeled], minlength=len(sizes))
    sizes_labeled = sizes_labeled[sizes_labeled > 0]
    enough, count = int(LEVEL * (1 + PERMUTATIONS)), 0
    for _ in range(PERMUTATIONS):
        selection = random.permutation(len(sizes))[: len(sizes_labeled)]
        counts = sizes[selection]
        slots = np.repeat(np.arange(len(selection)), counts)
        firsts = np.concatenate([[0], counts.cumsum()[:-1]])
        subjects = order[starts[selection][slots] + np.arange(len(slots)) - firsts[slots]]
        shuffled = np.lexsort((random.random(len(slots)), slots))
        rank = np.arange(len(slots)) - firsts[slots]
        sample = np.bincount(bins[subjects[shuffled[rank < sizes_labeled[slots]]]], minlength=len(everyone))
        count += bool(_differences(sample[None, :], everyone)[0] >= greatest - 1e-12)
        if count >= enough:
            break
    return count
