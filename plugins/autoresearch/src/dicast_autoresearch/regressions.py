"""Secondary metrics that became worse by more than their noise."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from .decision import FEWEST, Direction, mad
from .log import Experiment, unit_of
from .session import Session

_COST = re.compile(
    r"(^|[._])(cost|price|usd|msat|latency|duration|time|seconds|tokens|memory|size|errors?|failures?|failed|loss|crashes|warnings)"
    r"([._]|$)"
)
"""Words of metric names of which less is better."""


def regressions(metrics: Mapping[str, float], before: Sequence[Experiment], session: Session) -> str:
    """Return the secondary *metrics* that are worse than in the best kept experiment *before*, as one sentence.

    A metric is worse beyond its noise if the difference exceeds the median absolute deviation of its values in the segment. With fewer
    than 3 values no noise is known, and the sentence says so. The text is empty without any regression.
    """
    found = list(_worse(metrics, before, session))
    return f"regressions: {', '.join(found)}" if found else ""


def direction_of(name: str, session: Session) -> Direction:
    """Return which way a secondary metric is better: as the session says, else by its name."""
    stated = session.secondary_directions.get(name)
    if stated is not None:
        return stated
    return "lower_is_better" if unit_of(name) or _COST.search(name.lower()) else "higher_is_better"


def _worse(metrics: Mapping[str, float], before: Sequence[Experiment], session: Session) -> Iterator[str]:
    kept = [one for one in before if one.status == "keep" and one.primary_metric is not None]
    sign = 1 if session.direction == "higher_is_better" else -1
    best = max(kept, key=lambda one: sign * (one.primary_metric or 0.0), default=None)
    for name, value in metrics.items():
        if best is None or name == session.primary or name not in best.secondary_metrics:
            continue
        reference = best.secondary_metrics[name]
        lost = reference - value if direction_of(name, session) == "higher_is_better" else value - reference
        values = [one.secondary_metrics[name] for one in before if name in one.secondary_metrics]
        noise = (mad(values) or 0.0) if len(values) >= FEWEST else None
        if lost > (noise or 0.0):
            known = f"noise {noise:g}" if noise is not None else "noise not known yet"
            yield f"{name} {reference:g} -> {value:g} (worse by {lost:g}, {known})"
