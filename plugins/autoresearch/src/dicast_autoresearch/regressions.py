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
"""Words in names of metrics for which lower is better."""


def regressions(metrics: Mapping[str, float], before: Sequence[Experiment], session: Session) -> str:
    """Return the secondary *metrics* that are worse than in the best kept experiment *before*, as one sentence.

    A metric is worse beyond its noise if the difference exceeds the median absolute deviation of its values in the segment. With fewer
    than 3 values the noise is unknown, and the sentence states that. The text is empty without any regression.
    """
    worse = list(_worse(metrics, before, session))
    return f"regressions: {', '.join(worse)}" if worse else ""


def direction_of(name: str, session: Session) -> Direction:
    """Return whether higher or lower values of a secondary metric are better: as the session states, else by its name."""
    stated = session.secondary_directions.get(name)
    if stated is not None:
        return stated
    return "lower_is_better" if unit_of(name) or _COST.search(name.lower()) else "higher_is_better"


def _worse(metrics: Mapping[str, float], before: Sequence[Experiment], session: Session) -> Iterator[str]:
    kept_experiments = [
        experiment for experiment in before if experiment.status == "keep" and experiment.primary_metric is not None
    ]
    sign = 1 if session.direction == "higher_is_better" else -1
    best = max(kept_experiments, key=lambda experiment: sign * (experiment.primary_metric or 0.0), default=None)
    for name, value in metrics.items():
        if best is None or name == session.primary or name not in best.secondary_metrics:
            continue
        reference = best.secondary_metrics[name]
        lost = reference - value if direction_of(name, session) == "higher_is_better" else value - reference
        values = [experiment.secondary_metrics[name] for experiment in before if name in experiment.secondary_metrics]
        noise = (mad(values) or 0.0) if len(values) >= FEWEST else None
        if lost > (noise or 0.0):
            noise_text = f"noise {noise:g}" if noise is not None else "noise unknown yet"
            yield f"{name} {reference:g} -> {value:g} (worse by {lost:g}, {noise_text})"
