"""Scores of the subjects that both runs judged, and their differences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from dicast import Results

from ..numbers.scale import common_power, divide_by_power, multiply_by_power
from ..numbers.ties import differences, varies
from ..numbers.values import json_number
from ..scores.sides import Sides
from ..scores.table import Key, shared_rows

if TYPE_CHECKING:
    from ..numbers.values import Column
    from ..scores.table import Rows


@attrs.frozen
class PairedScores:
    """Scores of the *subjects* with a score in both runs, *before* and *after*, and the *change*, after minus before."""

    subjects: list[Key]
    before: Column
    after: Column
    change: Column

    @classmethod
    def of(cls, sides: Sides, rows: tuple[Rows, Rows]) -> PairedScores:
        """Return the paired scores of the criterion of *sides*; *rows* are the shared rows of both tables."""
        import numpy as np  # 0.1 s, which starting a run does not spend

        before, after = sides.baseline.scores(sides.criterion)[rows[0]], sides.variant.scores(sides.criterion)[rows[1]]
        places = np.flatnonzero(~(np.isnan(before) | np.isnan(after)))
        keys = list(sides.baseline.rows)
        subjects = [keys[row] for row in rows[0][places].tolist()]
        return cls(subjects, before[places], after[places], differences(after[places], before[places]))


def describe_change(change: Column) -> dict[str, Any]:
    """Return ``n``, ``mean_difference``, its 95 % interval by the paired t-test, and ``effect_size`` (d_z) of the differences *change*.

    An undefined figure is null.
    """
    figures: dict[str, Any] = {
        "n": len(change),
        "mean_difference": None,
        "effect_size": None,
        "ci_low": None,
        "ci_high": None,
    }
    power = common_power(change)
    scaled = divide_by_power(change, power)
    if len(scaled):
        figures["mean_difference"] = multiply_by_power(scaled.mean(), power)
    if len(scaled) > 1 and varies(scaled):
        from scipy import stats  # type: ignore[import-untyped]  # no types; 2 s, which starting a run does not spend

        low, high = stats.ttest_1samp(scaled, 0.0).confidence_interval(0.95)
        figures |= {
            "effect_size": json_number(scaled.mean() / scaled.std(ddof=1)),
            "ci_low": multiply_by_power(low, power),
            "ci_high": multiply_by_power(high, power),
        }
    return figures


def scale_warning(scores: PairedScores, least: float, line: float | None, options: str) -> str:
    """Return a note for a sentence with the bound *least*, if the bound is above 1 and all *scores* are from 0 to 1; else an empty text.

    *line* is the ``pass_at`` of the run, if known.
    """
    if least <= 1 or not all(((side >= 0) & (side <= 1)).all() for side in (scores.before, scores.after)):
        return ""
    hint = "" if line is None else f"; the run itself passes from {line:g} on"
    return f"; all scores are from 0 to 1, which is another scale: set the options {options}{hint}"


def pair_rows(baseline: Results, variant: Results) -> tuple[Rows, Rows]:
    """Return the rows of the subjects that both runs have, in their tables."""
    return shared_rows(baseline, variant)


def subject_key(subject: Key) -> Mapping[str, str]:
    """Return the kind and the id of *subject* as a mapping."""
    return dict(zip(("subject_kind", "subject_id"), subject, strict=True))
