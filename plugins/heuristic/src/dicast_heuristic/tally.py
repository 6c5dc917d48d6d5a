"""The score of a workload, step by step."""

from __future__ import annotations

import attrs


@attrs.define
class Tally:
    """Score, flags and signals of a workload so far.

    :param turns: the part of *score* that comes from the turns.
    :param share: the weight of the turns in the mean.
    :param checked: whether anything besides the turns was checked.
    """

    score: float
    turns: float
    share: float = 1.0
    positive: list[str] = attrs.field(factory=list)
    negative: list[str] = attrs.field(factory=list)
    signals: dict[str, object] = attrs.field(factory=dict)
    checked: bool = False

    def flag(self, name: str, *, good: bool) -> None:
        """Add a flag."""
        (self.positive if good else self.negative).append(name)

    def average(self, value: float) -> None:
        """Replace the score by its mean with *value*."""
        self.score, self.turns, self.share = (self.score + value) / 2, self.turns / 2, self.share / 2

    def miss(self, factor: float) -> None:
        """Multiply the score by *factor*, as a mean with a missing value of 0 does."""
        self.score, self.turns, self.share = self.score * factor, self.turns * factor, self.share * factor

    def weigh(self, weight: float) -> None:
        """Multiply the weight of the turns relative to the other parts by *weight*."""
        largest = max(weight, 1.0)  # prevents an overflow
        turns, rest = weight / largest, 1.0 / largest
        score_ = turns * self.share + rest * (1 - self.share)
        self.score = min(1.0, (turns * self.turns + rest * (self.score - self.turns)) / score_)
