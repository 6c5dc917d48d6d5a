"""Decision to keep or discard: one pure function of a measurement and the earlier measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Literal

import attrs

Direction = Literal["higher_is_better", "lower_is_better"]
Verdict = Literal["keep", "discard", "retry", "blocked"]
NoiseRule = Literal["none", "confidence", "recent"]

DIRECTIONS: dict[str, Direction] = {
    "higher": "higher_is_better",
    "higher_is_better": "higher_is_better",
    "lower": "lower_is_better",
    "lower_is_better": "lower_is_better",
}
"""Short and long names of directions."""

FEWEST = 3
"""Fewest values for an estimate of noise."""


@attrs.frozen(kw_only=True)
class Policy:
    """Conditions for keeping a change.

    :param direction: whether higher or lower values are better.
    :param min_delta: the least improvement on the best kept value.
    :param min_relative_delta: the least improvement as a share of the best kept value; ignored if that is 0.
    :param noise: ``confidence``: the improvement divided by the MAD of all values, including this one, must be at least
        ``min_confidence``. ``recent``: the improvement must exceed ``max(floor, MAD of the last 5 kept values)``. ``none``: neither.
    :param retry: with too few values to estimate noise, measure again rather than discard.
    :param max_validation_drop: how far the validation value may fall below the best kept run's.
    """

    direction: Direction = "higher_is_better"
    min_delta: float = 0.0
    min_relative_delta: float = 0.0
    noise: NoiseRule = "none"
    min_confidence: float = 2.0
    floor: float = 0.01
    retry: bool = True
    max_validation_drop: float | None = None


@attrs.frozen
class Measured:
    """One run: the primary *value*, None if it is missing; whether its *checks* passed; the *validation* value, if there is one."""

    value: float | None
    checks: bool = True
    validation: float | None = None


@attrs.frozen
class Before:
    """Earlier runs of the segment: *values* of all runs and *kept_values* of kept runs, in order, and the best run's *validation* value."""

    values: Sequence[float] = ()
    kept_values: Sequence[float] = ()
    validation: float | None = None

    def best(self, direction: Direction) -> float | None:
        """Return the best kept value."""
        pick = max if direction == "higher_is_better" else min
        return pick(self.kept_values) if self.kept_values else None


@attrs.frozen
class Decision:
    """A decision and its reason.

    :ivar decision: ``keep``, ``discard``, ``retry`` (measure again) or ``blocked`` (nothing was measured).
    :ivar reason: a word for the deciding rule.
    :ivar delta: the improvement on the best kept value, positive if it is better; None without both.
    :ivar noise: the MAD used by the noise rule.
    :ivar needed: the improvement that would have satisfied the deciding rule.
    """

    decision: Verdict
    reason: str
    delta: float | None = None
    noise: float | None = None
    needed: float | None = None


def mad(values: Sequence[float]) -> float | None:
    """Return the median absolute deviation from the median, unscaled; None for no values."""
    if not values:
        return None
    middle = median(values)
    return median(abs(value - middle) for value in values)


def confidence(values: Sequence[float], kept_values: Sequence[float], direction: Direction) -> float | None:
    """Return the distance of the best kept value from the first value, in units of the MAD of all *values*.

    It is None for fewer than 3 values, no spread, nothing kept, or a best value equal to the first. 2 and more is likely real, below 1 is noise.
    """
    best = Before(values, kept_values).best(direction)
    spread = mad(values)
    if len(values) < FEWEST or not spread or best is None or best == values[0]:
        return None
    return abs(best - values[0]) / spread


def decide(run: Measured, before: Before, policy: Policy) -> Decision:
    """Return the decision on *run*. Equal arguments give equal decisions."""
    if not run.checks:
        return Decision("discard", "checks_failed")
    if run.value is None:
        return Decision("blocked", "metric_missing")
    if not math.isfinite(run.value):
        return Decision("blocked", "metric_invalid")
    best = before.best(policy.direction)
    if best is None:
        return Decision("keep", "baseline")
    delta = run.value - best if policy.direction == "higher_is_better" else best - run.value
    return (
        _too_small(delta, best, policy)
        or _noise(run.value, delta, before, policy)
        or _validation(run, before, policy, delta)
        or Decision("keep", "metric_improved", delta)
    )


def _too_small(delta: float, best: float, policy: Policy) -> Decision | None:
    if not delta > 0:
        return Decision("discard", "not_better_than_best", delta, needed=0.0)
    if delta < policy.min_delta:
        return Decision("discard", "below_min_delta", delta, needed=policy.min_delta)
    needed = policy.min_relative_delta * abs(best)
    if best and delta < needed:
        return Decision("discard", "below_min_relative_delta", delta, needed=needed)
    return None


def _noise(value: float, delta: float, before: Before, policy: Policy) -> Decision | None:
    if policy.noise == "recent":
        recent_values = before.kept_values[-5:]
        spread = (mad(recent_values) or 0.0) if len(recent_values) >= FEWEST else 0.0
        needed = max(policy.floor, spread)
        return None if delta > needed else Decision("discard", "within_noise", delta, spread, needed)
    if policy.noise == "confidence":
        values = [*before.values, value]
        spread = mad(values) or 0.0
        if len(values) < FEWEST or not spread:
            return Decision("retry" if policy.retry else "discard", "insufficient_noise_evidence", delta, spread)
        needed = policy.min_confidence * spread
        return None if delta >= needed else Decision("discard", "below_confidence", delta, spread, needed)
    return None


def _validation(run: Measured, before: Before, policy: Policy, delta: float) -> Decision | None:
    if policy.max_validation_drop is None or before.validation is None:
        return None
    if run.validation is None:
        return Decision("blocked", "validation_missing", delta)
    sign = 1 if policy.direction == "higher_is_better" else -1
    dropped = sign * (before.validation - run.validation) > policy.max_validation_drop
    return Decision("discard", "validation_dropped", delta, needed=policy.max_validation_drop) if dropped else None
