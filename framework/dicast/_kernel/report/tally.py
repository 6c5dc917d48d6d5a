"""What the verdicts of one label come to, in memory that does not grow with them."""

from __future__ import annotations

from collections import Counter

import attrs

from ..model import BASES, Basis, Cost, weakest
from ..spool import Passes


@attrs.define
class ExactSum:
    """A sum of floats that loses nothing: as :func:`math.fsum`, without keeping them."""

    _units: int = 0

    def add(self, value: float) -> None:
        """Add *value*, which is finite."""
        numerator, denominator = value.as_integer_ratio()
        self._units += numerator << (_FINEST + 1 - denominator.bit_length())

    def over(self, count: int) -> float | None:
        """The sum divided by *count*, rounded once, so that a mean lies between what was added; None for a count of 0."""
        return self._units / (count << _FINEST) if count else None


_FINEST = 1074
"""The smallest float above 0 is 2 to the power of minus this."""


def nothing() -> dict[str, Cost]:
    """What nothing has cost, by unit of money: sums to add to."""
    return {"usd": Cost.zero(), "msat": Cost.zero("msat")}


@attrs.define
class Tally:
    """Running sums over the verdicts of one label; *bases* counts what its scores rest on."""

    scored: int = 0
    total: int = 0
    escalated: int = 0
    skipped: int = 0
    spared: int = 0
    saved: dict[str, Cost] = attrs.field(factory=nothing)
    score: ExactSum = attrs.field(factory=ExactSum)
    confidence: ExactSum = attrs.field(factory=ExactSum)
    kinds: Counter[str | None] = attrs.field(factory=Counter)
    fallbacks: Counter[str] = attrs.field(factory=Counter)
    passes: Passes = attrs.field(factory=Passes)
    bases: Counter[Basis] = attrs.field(factory=Counter)
    lowest: float = 1.0
    highest: float = 0.0

    def mean(self) -> float | None:
        """The mean score, or None without any."""
        return self.score.over(self.scored)

    def mean_confidence(self) -> float | None:
        """The mean confidence, or None without any."""
        return self.confidence.over(self.scored)

    def basis(self) -> Basis | None:
        """The weakest basis of the scores, or None without any."""
        return weakest(self.bases) if self.bases else None

    def by_basis(self) -> dict[Basis, int]:
        """How many scores rest on what, the strongest first."""
        return {basis: self.bases[basis] for basis in BASES if basis in self.bases}
