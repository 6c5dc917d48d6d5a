"""Difference of two runs in one figure of their scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import attrs

from dicast import ConfigError, Problem, Results, nearest

from ..numbers.scale import TOO_LARGE
from ..numbers.values import json_number
from ..scores.sides import Sides, compare_criteria
from ..scores.summary import summarize_scores
from ..scores.table import Table
from ..text.reasons import without_empty

Figure = Literal["mean", "median", "min", "max", "std", "pass_rate"]
FIGURES: tuple[str, ...] = get_args(Figure)


@attrs.frozen
class ScoreDelta:
    """The variant's figure minus the baseline's, for each criterion that both runs have.

    The figure is one of ``stats/score_stats``. The difference is null if a run lacks the figure, and ``reasons`` has the cause.

    :param metric: the figure: ``mean``, ``median``, ``min``, ``max``, ``std`` or ``pass_rate``.
    :param criteria: only these criteria; all by default.
    """

    name = "score_delta"

    metric: Figure = "mean"
    criteria: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        if self.metric not in FIGURES:
            message = f"unknown metric {self.metric!r}: choose one of {', '.join(FIGURES)}"
            raise ConfigError(Problem(message, value=self.metric, hint=nearest(str(self.metric), FIGURES)))

    def compare(self, baseline: Results, variant: Results) -> Mapping[str, object]:
        """Return the differences by criterion."""
        reasons: dict[str, str] = {}

        def delta(sides: Sides) -> float | None:
            ours, theirs = (_summary(table, sides.criterion) for table in (sides.baseline, sides.variant))
            if self.metric not in ours or self.metric not in theirs:
                reasons[sides.criterion] = f"{self.metric} needs a score in both runs"
                return None
            before, after = ours[self.metric], theirs[self.metric]
            change = None if before is None or after is None else json_number(after - before)
            if change is None:
                reasons[sides.criterion] = TOO_LARGE
            return change

        document = compare_criteria(baseline, variant, self.criteria, delta)
        return {**document, **without_empty({"reasons": reasons})}


def _summary(table: Table, criterion: str) -> dict[str, Any]:
    flagged, passes = (int(marks.sum()) for marks in table.passes(criterion))
    return summarize_scores(table.known_scores(criterion), table.missing(criterion), flagged, passes)
