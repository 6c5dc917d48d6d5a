"""Subjects that pass in one run and not in another."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from typing import TYPE_CHECKING, Any

from dicast import Results

from .table import Key, Table, pairs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .table import Rows
    from .values import Column

    Marks = NDArray[np.bool_]
    Known = tuple[str | None, Marks, tuple[Marks, Marks], tuple[Column, Column]]


def flips(baseline: Results, variant: Results) -> tuple[list[dict[str, Any]], int]:
    """The subjects whose pass has changed, in the order of *baseline*, and of how many that is known; the newest record counts.

    ``a`` and ``b`` say whether the subject passed in baseline and variant, ``score_a`` and ``score_b`` what it scored. Flags are
    compared by ``criterion``; of a subject that has none in both runs, the score is: it passes from the ``pass_at`` on of what gave it, and the criterion is null.
    """
    import numpy as np  # 0.1 s, which starting a run does not spend

    before, after = Table.of(baseline), Table.of(variant)
    rows = pairs(before, after)
    known, found, subjects = np.zeros(len(rows[0]), bool), list[tuple[int, dict[str, Any]]](), list(before.rows)
    for criterion, both, (was, now), scores in _passes(before, after, rows):
        known |= both
        for place in np.flatnonzero(both & (was != now)).tolist():
            passes = {"a": bool(was[place]), "b": bool(now[place]), "criterion": criterion}
            scored = {"score_a": _score(scores[0][place]), "score_b": _score(scores[1][place])}
            found.append((place, {**_named(subjects[rows[0][place]]), **passes, **scored}))
    found.sort(key=lambda one: one[0])
    return [one for _, one in found], int(known.sum())


def passes_alone(baseline: Results, variant: Results) -> dict[str, int]:
    """How many subjects pass in baseline alone (``a``), in variant alone (``b``), ``of`` how many that is known.

    A subject with flags passes where all its flags are true; of one that has none in both runs the score says it, as in :func:`flips`.
    """
    import numpy as np

    before, after = Table.of(baseline), Table.of(variant)
    ours, theirs = pairs(before, after)
    (flagged, was), (marked, now) = before.flags(), after.flags()
    flagged, was, marked, now = flagged[ours], was[ours], marked[theirs], now[theirs]
    scored = ~(flagged | marked | np.isnan(before.whole[ours]) | np.isnan(after.whole[theirs]))
    was, now = (
        np.where(scored, side, flags)
        for side, flags in ((before.whole_passes[ours], was), (after.whole_passes[theirs], now))
    )
    known = (flagged & marked) | scored
    return {"a": int((known & was & ~now).sum()), "b": int((known & now & ~was).sum()), "of": int(known.sum())}


def _passes(before: Table, after: Table, rows: tuple[Rows, Rows]) -> Iterator[Known]:
    """By criterion, and by the score at last: in which of the pairs *rows* it is known in both runs, who passes, and what it scored."""
    import numpy as np

    ours, theirs = rows
    flagged = np.zeros(len(ours), bool)
    for one in [one for one in before.criteria if one in after.criteria]:
        both = before.flagged(one)[ours] & after.flagged(one)[theirs]
        flagged |= both
        passes = before.passes(one)[1][ours], after.passes(one)[1][theirs]
        yield one, both, passes, (before.scores(one)[ours], after.scores(one)[theirs])
    was, now = before.whole[ours], after.whole[theirs]
    yield (
        None,
        ~(flagged | np.isnan(was) | np.isnan(now)),
        (before.whole_passes[ours], after.whole_passes[theirs]),
        (was, now),
    )


def _named(subject: Key) -> dict[str, str]:
    return dict(zip(("subject_kind", "subject_id"), subject, strict=True))


def _score(value: float) -> float | None:
    return None if isnan(value) else float(value)
