"""Keep or discard: one pure function of what was measured and what was measured before."""

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
"""Both vocabularies of directions."""

FEWEST = 3
"""So few values say nothing about noise."""


@attrs.frozen(kw_only=True)
class Policy:
    """When a change is kept.

    :param direction: which way is better.
    :param min_delta: the improvement on the best kept value has to be at least this.
    :param min_relative_delta: likewise, as a share of the best kept value; not asked where that is 0.
    :param noise: ``confidence``: the improvement divided by the MAD of all values, this one included, has to be at least
        ``min_confidence``. ``recent``: the improvement has to exceed ``max(floor, MAD of the last 5 kept values)``. ``none``: neither.
    :param retry: with too few values to tell noise, measure again rather than discard.
    :param max_validation_drop: how far the validation value may fall below that of the best kept run.
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
    """One run: the primary *value*, None where it is missing; whether its *checks* passed; the *validation* value, if there is one."""

    value: float | None
    checks: bool = True
    validation: float | None = None


@attrs.frozen
class Before:
    """What the segment has: *values* of all runs in order, those of the *kept* ones in order, and the best one's *validation* value."""

    values: Sequence[float] = ()
    kept: Sequence[float] = ()
    validation: float | None = None

    def best(self, direction: Direction) -> float | None:
        """The best kept value."""
        pick = max if direction == "higher_is_better" else min
        return pick(self.kept) if self.kept else None


@attrs.frozen
class Decision:
    """What is to be done, and why.

    :ivar decision: ``keep``, ``discard``, ``retry`` (measure again) or ``blocked`` (nothing was measured).
    :ivar reason: a word for the rule that decided.
    :ivar delta: the improvement on the best kept value, positive where it is better; None without both.
    :ivar noise: the MAD that the rule for noise used.
    :ivar needed: the improvement that would have been enough for the rule that decided.
    """

    decision: Verdict
    reason: str
    delta: float | None = None
    noise: float | None = None
    needed: float | None = None


def mad(values: Sequence[float]) -> float | None:
    """The median absolute deviation from the median, unscaled; None for no values."""
    if not values:
        return None
    middle = median(values)
    return median(abs(value - middle) for value in values)


def confidence(values: Sequence[float], kept: Sequence[float], direction: Direction) -> float | None:
    """How far the best kept value is from the first one, in units of the MAD of all *values*.

    None for fewer than 3 values, no spread, nothing kept, or a best that is the first. 2 and more is likely real, below 1 is noise.
    """
    best = Before(values, kept).best(direction)
    spread = mad(values)
    if len(values) < FEWEST or not spread or best is None or best == values[0]:
        return None
    return abs(best - values[0]) / spread


def decide(run: Measured, before: Before, policy: Policy) -> Decision:
    """What becomes of *run*. The same arguments give the same decision."""
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
        kept = before.kept[-5:]
        spread = (mad(kept) or 0.0) if len(kept) >= FEWEST else 0.0
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
