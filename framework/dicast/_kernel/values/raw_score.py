"""Answer of a metric on a scale of its own."""

from __future__ import annotations

from collections.abc import Mapping

from ..classes import field, frozen
from .answer import ReadyAnswer
from .errors import InvalidScore
from .score import Cost, Score, finite_number

_UNDECLARED = "[0, 1]; declare its scale with range: [low, high]"


@frozen
class RawScore(ReadyAnswer):
    """Answer of a metric on a scale of its own, which the slot's ``range`` maps to a :class:`Score`.

    Without a ``range`` the value must be in [0, 1], unless the metric's ``needs_range`` is True: then it stays unmapped, in
    :attr:`Score.raw`. The other fields are the fields of a score.

    :param value: the number; any finite number.
    :param confidence: from 0 to 1.
    :param details: a text about the value, for users.
    :param feedback: a text for the author of the judged output.
    :param signals: data about the value, as JSON.
    :raises InvalidScore: if *value* is not a finite number.
    """

    value: float
    confidence: float = 1.0
    details: str = ""
    feedback: str = ""
    cost: Cost = field(factory=Cost.zero)
    signals: Mapping[str, object] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        finite_number(self.value, "a raw score")

    def on(self, scale: tuple[float, float] | None) -> Score:
        """Return the score on *scale*, from worst to best, which may fall; without a scale, on the scale from 0 to 1.

        :raises InvalidScore: if the value is outside the scale.
        """
        worst, best = scale or (0.0, 1.0)
        low, high = sorted((worst, best))
        if not low <= self.value <= high:
            advice = f"the declared range [{low:g}, {high:g}]" if scale else _UNDECLARED
            raise InvalidScore(f"{self.value!r} lies outside {advice}")
        return self._score((self.value - worst) / (best - worst))

    def unscaled(self) -> Score:
        """Return the score without a value in [0, 1]: the number is in ``raw`` alone."""
        return self._score(None)

    def _score(self, value: float | None) -> Score:
        return Score(value, self.confidence, self.details, self.feedback, self.cost, self.signals, float(self.value))
