"""The scores of the subjects that two runs have both judged, and their differences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from dicast import Results

from ..numbers.scale import divided, multiplied, power_of
from ..numbers.ties import differences, varies
from ..numbers.values import plain
from ..scores.sides import Sides
from ..scores.table import Key, Table, pairs

if TYPE_CHECKING:
    from ..numbers.values import Column
    from ..scores.table import Rows


@attrs.frozen
class PairedScores:
    """The *subjects* with a score in both runs, what each scored before (*was*) and after (*now*), and the *change*, now less was."""

    subjects: list[Key]
    was: Column
    now: Column
    change: Column

    @classmethod
    def of(cls, sides: Sides, rows: tuple[Rows, Rows]) -> PairedScores:
        """Those of a criterion; *rows* are the pairs of both tables."""
        import numpy as np  # 0.1 s, which starting a run does not spend

        was, now = sides.baseline.scores(sides.criterion)[rows[0]], sides.variant.scores(sides.criterion)[rows[1]]
        places = np.flatnonzero(~(np.isnan(was) | np.isnan(now)))
        keys = list(sides.baseline.rows)
        subjects = [keys[row] for row in rows[0][places].tolist()]
        return cls(subjects, was[places], now[places], differences(now[places], was[places]))


def mean_change(change: Column) -> dict[str, Any]:
    """Of the differences *change*: ``n``, ``mean_difference``, its 95 % interval of the paired t-test, and ``effect_size``, d_z.

    What is not defined is null.
    """
    found: dict[str, Any] = {
        "n": len(change),
        "mean_difference": None,
        "effect_size": None,
        "ci_low": None,
        "ci_high": None,
    }
    power = power_of(change)
    scaled = divided(change, power)
    if len(scaled):
        found["mean_difference"] = multiplied(scaled.mean(), power)
    if len(scaled) > 1 and varies(scaled):
        from scipy import stats  # type: ignore[import-untyped]  # no types; 2 s, which starting a run does not spend

        low, high = stats.ttest_1samp(scaled, 0.0).confidence_interval(0.95)
        found |= {
            "effect_size": plain(scaled.mean() / scaled.std(ddof=1)),
            "ci_low": multiplied(low, power),
            "ci_high": multiplied(high, power),
        }
    return found


def other_scale(scores: PairedScores, least: float, line: float | None, options: str) -> str:
    """What to add to a sentence that counts from *least* on where all *scores* are from 0 to 1; *line* is the ``pass_at`` that the run knows."""
    if least <= 1 or not all(((side >= 0) & (side <= 1)).all() for side in (scores.was, scores.now)):
        return ""
    known = "" if line is None else f"; the run itself passes from {line:g} on"
    return f"; all scores are from 0 to 1, which is another scale: the options {options} name it{known}"


def paired_rows(baseline: Results, variant: Results) -> tuple[Rows, Rows]:
    """The rows of each subject that both runs have, in their tables."""
    return pairs(Table.of(baseline), Table.of(variant))


def named(subject: Key) -> Mapping[str, str]:
    """The kind and the id of *subject*."""
    return dict(zip(("subject_kind", "subject_id"), subject, strict=True))
