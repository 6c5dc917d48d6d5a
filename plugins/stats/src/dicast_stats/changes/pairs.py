"""Differences of one label over the subjects with a score in both runs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from dicast import Results
from dicast.reporting import read_contents

from ..numbers.scale import common_power, divide_by_power
from ..numbers.ties import differences
from ..numbers.values import ignore_float_warnings
from ..scores.table import Key, Table, shared_rows
from .content import has_equal_judges, has_equal_output, reads_texts
from .estimate import Estimate, estimate_between, estimate_mean, exact_zero

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..numbers.values import Column
    from ..scores.table import Rows

SCORE = "score"
"""Name of scores without a label."""


@attrs.frozen
class Pairs:
    """Differences of one label, variant minus baseline.

    :param change: the differences, divided by two to the power *power*.
    :param sessions: the session of each pair; the subject itself without a session.
    :param identical: the number of pairs whose outputs and judges are equal in both runs; their difference is 0.
    :param unpaired_baseline: the number of subjects with a score in the baseline alone.
    :param unpaired_variant: the number of subjects with a score in the variant alone.
    :param held_back: the numbers of subjects that the proxies held back in the baseline and in the variant, in pairs whose difference is open.
        *change* is without these pairs.
    :param varied: the subjects of identical pairs whose scores differ, because the judge's answer varies.
    :param ends: all pairs with the lowest and with the highest difference of each open pair; None without open pairs.
    :param is_raw: the scores are on a scale of their own, without bounds.
    """

    change: Column
    power: int
    sessions: Sequence[Hashable]
    identical: int
    unpaired_baseline: int
    unpaired_variant: int
    held_back: tuple[int, int] = (0, 0)
    varied: frozenset[Key] = frozenset()
    ends: tuple[Pairs, Pairs] | None = None
    is_raw: bool = False

    def estimate(self) -> Estimate:
        """Return the mean of the differences with its interval, where the score of a subject that the proxies held back is open.

        Such a score is between 0 and 1; on a raw scale it has no bounds, so the estimate has no figures.
        """
        if self.ends is None:
            return self.estimate_scored()
        least, most = self.ends
        if self.is_raw:
            return Estimate(len(least.change), len({*least.sessions}), None)
        return estimate_between(least.estimate_scored(), most.estimate_scored())

    def estimate_scored(self) -> Estimate:
        """Return the mean of the differences of the pairs with two scores, with its interval."""
        if self.identical and self.identical == len(self.change):
            return exact_zero(self.identical, len({*self.sessions}))
        with ignore_float_warnings():
            return estimate_mean(self.change, self.sessions, self.power)


def pair_label(baseline: Results, variant: Results, label: str) -> Pairs:
    """Return the differences of the subjects with a score of *label* in both runs; the same result for all comparisons.

    A pair whose output and judge are equal in both runs has the difference 0: another answer of the same judge about the same output is no change.
    For a metric without a model, the task's figures have to be equal, too, as it may be about the time of the answer.
    """
    key = (pair_label, id(baseline), label)
    if key not in variant.kept:
        variant.kept[key] = _pair_label(baseline, variant, label), baseline
    pairs: Pairs = variant.kept[key][0]
    return pairs


def _pair_label(baseline: Results, variant: Results, label: str) -> Pairs:
    import numpy as np  # 0.1 s, which starting a run does not spend

    tables = Table.of(baseline), Table.of(variant)
    ours, theirs = shared_rows(baseline, variant)
    before, after = (read_scores(table, label) for table in tables)
    held_before, held_after = (_held_back(table, label) for table in tables)
    both = (~np.isnan(before) | held_before)[ours] & (~np.isnan(after) | held_after)[theirs]
    ours, theirs = ours[both], theirs[both]
    subjects = [*tables[0].rows]
    keys = [subjects[row] for row in ours.tolist()]
    identical = _identical(baseline, variant, label, keys, (before[ours], after[theirs]))
    is_varied = identical & (before[ours] != after[theirs]) & ~(held_before[ours] | held_after[theirs])
    varied = frozenset(keys[row] for row in np.flatnonzero(is_varied).tolist())
    is_held = held_before[ours] & ~identical, held_after[theirs] & ~identical
    is_open = is_held[0] | is_held[1]
    known = np.flatnonzero(~is_open)
    sessions = [tables[1].sessions.get(key) or tables[0].sessions.get(key) or key for key in keys]
    counts = [
        int((~np.isnan(scores) | held).sum()) - len(keys)
        for scores, held in ((before, held_before), (after, held_after))
    ]

    def pairs(rows: Rows, before: Column, after: Column, **options: Any) -> Pairs:
        with ignore_float_warnings():
            change, power = _scaled_differences(after[rows], before[rows])
        change = np.where(identical[rows], 0.0, change)
        sessions_ = [sessions[row] for row in rows]
        return Pairs(
            change, power, sessions_, int(identical[rows].sum()), counts[0], counts[1], varied=varied, **options
        )

    is_zero = identical & (held_before[ours] | held_after[theirs])
    before, after = (np.where(is_zero, 0.0, scores) for scores in (before[ours], after[theirs]))
    if not is_open.any():
        return pairs(known, before, after)
    everything = np.arange(len(keys))
    least, most = (
        pairs(everything, np.where(is_held[0], 1 - score, before), np.where(is_held[1], score, after))
        for score in (0.0, 1.0)
    )
    counts_held = int(is_held[0].sum()), int(is_held[1].sum())
    is_raw = label in {*baseline.raw, *variant.raw}
    return pairs(known, before, after, held_back=counts_held, ends=(least, most), is_raw=is_raw)


def _held_back(table: Table, label: str) -> NDArray[np.bool_]:
    """Return whether the score of each row is open, because the proxies held the subject back."""
    import numpy as np

    if label not in table.criteria:
        return np.zeros(len(table.rows), bool)
    return table.held_back(label) & np.isnan(table.scores(label))


def read_scores(table: Table, label: str) -> Column:
    """Return the scores of *label* by row; of records without labels the score of the record."""
    return table.record_scores if label == SCORE and label not in table.criteria else table.scores(label)


def _scaled_differences(after: Column, before: Column) -> tuple[Column, int]:
    """Return the differences, divided by two to a power, and the power."""
    import numpy as np

    power = 0
    if np.isinf(after - before).any():  # although the scores are finite
        after, before, power = after / 2, before / 2, 1
    change = differences(after, before)
    exponent = common_power(change)
    return divide_by_power(change, exponent), power + exponent


def _identical(
    baseline: Results, variant: Results, label: str, keys: Sequence[Key], scores: tuple[Column, Column]
) -> NDArray[np.bool_]:
    """Return whether the output and the judge of each subject are equal in both runs.

    A metric may read the time or the cost of an answer: if these differ, the *scores* must be equal, too.
    """
    import numpy as np

    if not has_equal_judges(baseline, variant, label):
        return np.zeros(len(keys), bool)
    before, after = read_contents(baseline), read_contents(variant)
    exact = not reads_texts(baseline, variant, label)
    equal = [
        has_equal_output(before.get(key), after.get(key), with_figures=exact and is_changed)
        for key, is_changed in zip(keys, (scores[0] != scores[1]).tolist(), strict=True)
    ]
    return np.array(equal, bool)
