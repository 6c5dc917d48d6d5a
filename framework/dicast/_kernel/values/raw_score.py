"""A metric's answer on a scale of its own."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from ..classes import field, frozen
from .errors import InvalidScore
from .score import Cost, Score

_UNDECLARED = "[0, 1]; say on which scale it is with range: [low, high]"


@frozen
class RawScore:
    """One metric's answer on a scale of its own, of which the slot's ``range`` makes a :class:`Score`.

    Without a ``range`` it is one where *value* lies in [0, 1]; anything else is an ``invalid_score``. The other fields are those of a score.

    :raises InvalidScore: when *value* is no finite number.
    """

    value: float
    confidence: float = 1.0
    details: str = ""
    feedback: str = ""
    cost: Cost = field(factory=Cost.zero)
    signals: Mapping[str, object] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        value: object = self.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
            raise InvalidScore(f"a raw score is a finite number, not {self.value!r:.100}")

    def on(self, scale: tuple[float, float] | None) -> Score:
        """The score on *scale*, from worst to best, which may fall; without one on that from 0 to 1.

        :raises InvalidScore: when the value lies outside of it.
        """
        worst, best = scale or (0.0, 1.0)
        low, high = sorted((worst, best))
        if not low <= self.value <= high:
            advice = f"the declared range [{low:g}, {high:g}]" if scale else _UNDECLARED
            raise InvalidScore(f"{self.value!r} lies outside {advice}")
        value = (self.value - worst) / (best - worst)
        return Score(value, self.confidence, self.details, self.feedback, self.cost, self.signals, float(self.value))


def _is_finite(value: float) -> bool:
    try:
        return isfinite(value)
    except OverflowError:  # an integer larger than any float
        return False
