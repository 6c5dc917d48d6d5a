"""What a workload comes to, step by step."""

from __future__ import annotations

import attrs


@attrs.define
class Tally:
    """What was found of one workload so far: the *score*, the flags, the other signals; *checked* says that more than turns was.

    Of the score *turns* comes from the turns, whose share in the mean is *share*; what is missing has the rest of it.
    """

    score: float
    turns: float
    share: float = 1.0
    positive: list[str] = attrs.field(factory=list)
    negative: list[str] = attrs.field(factory=list)
    signals: dict[str, object] = attrs.field(factory=dict)
    checked: bool = False

    def flag(self, name: str, *, good: bool) -> None:
        """Raise a flag."""
        (self.positive if good else self.negative).append(name)

    def average(self, other: float) -> None:
        """Let *other* count as much as all before it."""
        self.score, self.turns, self.share = (self.score + other) / 2, self.turns / 2, self.share / 2

    def miss(self, factor: float) -> None:
        """Let something that counts be 0, so that *factor* is left of all before it."""
        self.score, self.turns, self.share = self.score * factor, self.turns * factor, self.share * factor

    def weigh(self, weight: float) -> None:
        """Let the turns count *weight* times as much, by what all the rest does."""
        largest = max(weight, 1.0)  # so that no number is too large
        turns, rest = weight / largest, 1.0 / largest
        whole = turns * self.share + rest * (1 - self.share)
        self.score = min(1.0, (turns * self.turns + rest * (self.score - self.turns)) / whole)
