"""How much higher the variant's scores are, by one of their figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import attrs

from dicast import ConfigError, Problem, Results, nearest

from ..numbers.scale import TOO_LARGE
from ..numbers.values import plain
from ..scores.sides import Sides, compared
from ..scores.summary import summary
from ..scores.table import Table
from ..text.reasons import there

Figure = Literal["mean", "median", "min", "max", "std", "pass_rate"]
FIGURES: tuple[str, ...] = get_args(Figure)


@attrs.frozen
class ScoreDelta:
    """The variant's figure less the baseline's, for each criterion that both have.

    The figure is one of ``stats/score_stats``. It is null where either has none, and ``reasons`` says so.

    :param metric: which figure: ``mean``, ``median``, ``min``, ``max``, ``std`` or ``pass_rate``.
    :param criteria: only these; all by default.
    """

    name = "score_delta"

    metric: Figure = "mean"
    criteria: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        if self.metric not in FIGURES:
            message = f"unknown metric {self.metric!r}: it is {', '.join(FIGURES)}"
            raise ConfigError(Problem(message, value=self.metric, hint=nearest(str(self.metric), FIGURES)))

    def compare(self, baseline: Results, variant: Results) -> Mapping[str, object]:
        """The differences by criterion."""
        reasons: dict[str, str] = {}

        def delta(sides: Sides) -> float | None:
            ours, theirs = (_summary(table, sides.criterion) for table in (sides.baseline, sides.variant))
            if self.metric not in ours or self.metric not in theirs:
                reasons[sides.criterion] = f"{self.metric} needs a score in both runs"
                return None
            before, after = ours[self.metric], theirs[self.metric]
            found = None if before is None or after is None else plain(after - before)
            if found is None:
                reasons[sides.criterion] = TOO_LARGE
            return found

        found = compared(baseline, variant, self.criteria, delta)
        return {**found, **there({"reasons": reasons})}


def _summary(table: Table, criterion: str) -> dict[str, Any]:
    flagged, passes = (int(marks.sum()) for marks in table.passes(criterion))
    return summary(table.present(criterion), table.missing(criterion), flagged, passes)
