"""The subjects that passed a gate and the groups of those that it held back, and what audits of these say of the mean."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from ..statistics.moments import Moments

LEAST, LEAST_OF_TWO = 10, 5
"""How many audits an interval takes, in general and where every truth is 0 or 1."""


@attrs.define
class Held:
    """What is known of one group of subjects that were held back: all *held* ones by score, the *audited* ones by score and truth."""

    held: Moments = attrs.field(factory=Moments)
    audited: Moments = attrs.field(factory=Moments)

    @property
    def each(self) -> float:
        """For how many held back subjects an audited one stands."""
        return self.held.count / self.audited.count if self.audited.count else 0.0


@attrs.define
class Strata:
    """What is known of one label: *passed* subjects by truth, and those held back by *groups*, which are audited at rates of their own."""

    passed: Moments = attrs.field(factory=Moments)
    groups: dict[str, Held] = attrs.field(factory=dict)
    is_binary: bool = True

    def add(self, state: str, score: float, truth: float | None, group: str = "") -> bool:
        """Count a subject; whether it counts: one that passed and has no truth does not."""
        if state == "passed":
            if truth is None:
                return False
            self.passed.add(truth)
        else:
            known = self.groups.setdefault(group, Held())
            known.held.add(score)
            if state == "audited" and truth is not None:
                known.audited.add(score, truth)
        if truth is not None:
            self.is_binary = self.is_binary and truth in (0, 1)
        return True

    @property
    def count(self) -> int:
        """How many subjects there are."""
        return int(self.passed.count) + self.held_back

    @property
    def held_back(self) -> int:
        """How many were held back."""
        return int(sum(group.held.count for group in self.groups.values()))

    @property
    def audited(self) -> int:
        """How many of these were audited."""
        return int(sum(group.audited.count for group in self.groups.values()))

    @property
    def share_held(self) -> float:
        """Which share of them was held back."""
        return self.held_back / self.count

    def spread(self) -> float:
        """The variance of the truth, where an audited subject stands for as many as were held back for each."""
        passed, known = self.passed, [group for group in self.groups.values() if group.audited.count]
        total = passed.count * passed.x + sum(group.held.count * group.audited.y for group in known)
        mean = total / self.count
        squares = passed.xx + passed.count * (passed.x - mean) ** 2
        for group in known:
            audited = group.audited
            squares += group.each * (audited.yy + audited.count * (audited.y - mean) ** 2)
        return float(squares / self.count)


@attrs.frozen
class Part:
    """The estimate of one group: *slope* is how much of the score is made use of, *shift* what is added to it, *squares* what is left of the truth.

    *share* is the group's of all subjects, *count* its audits, *each* for how many an audit stands.
    """

    share: float
    count: float
    slope: float
    shift: float
    squares: float
    each: float

    @classmethod
    def of(cls, group: Held, count: int, *, slope: bool) -> Part:
        """The estimate of *group*, of *count* subjects in all, with the slope that does best or, without *slope*, with 0."""
        audited, m = group.audited, group.audited.count
        best = min(1.0, max(0.0, audited.slope())) if slope and m >= LEAST else 0.0
        left = audited.residual_squares(best)
        return cls(group.held.count / count, m, best, audited.y - best * audited.x, left, group.each)

    @property
    def tau2(self) -> float:
        """The variance of what is left."""
        return self.squares / (self.count - 1) if self.count > 1 else 0.0

    @property
    def degrees(self) -> float:
        """The degrees of freedom of that."""
        return self.count - 1 - (self.slope > 0)

    @property
    def own(self) -> float:
        """What the audits add to the mean's variance."""
        return self.share**2 * self.squares / self.degrees / self.count if self.degrees > 0 else 0.0

    def pseudo_squares(self, group: Held, mean: float) -> float:
        """The sum of squares, about *mean*, of the pseudo-scores of *group*, which may be a part of this one."""
        held, audited, slope = group.held, group.audited, self.slope
        off = audited.y - slope * audited.x - self.shift  # of all audited it is 0
        squares = slope * slope * held.xx + held.count * (slope * held.x + self.shift - mean) ** 2
        both = slope * (audited.xy - slope * audited.xx)
        both += audited.count * (slope * audited.x + self.shift - mean) * off
        squares += 2 * self.each * both
        return squares + self.each**2 * (audited.residual_squares(slope) + audited.count * off * off)


@attrs.frozen
class Estimate:
    """A corrected mean, with the estimate of each group of those held back."""

    mean: float
    parts: dict[str, Part]

    @classmethod
    def of(cls, strata: Strata, *, slope: bool) -> Estimate:
        """The estimate from *strata*; *slope* as in :meth:`Part.of`."""
        n = strata.count
        parts = {name: Part.of(group, n, slope=slope) for name, group in strata.groups.items()}
        mean = strata.passed.count / n * strata.passed.x
        mean += sum(part.share * (part.slope * strata.groups[name].held.x + part.shift) for name, part in parts.items())
        return cls(mean, parts)

    @property
    def slope(self) -> float:
        """The slope; of several groups their mean, by the subjects that were held back in each."""
        return self._mean([part.slope for part in self.parts.values()])

    @property
    def tau2(self) -> float:
        """The variance that the score leaves of the truth, likewise."""
        return self._mean([part.tau2 for part in self.parts.values()])

    @property
    def own(self) -> float:
        """What the audits add to the mean's variance."""
        return math.fsum(part.own for part in self.parts.values())

    def _mean(self, values: Sequence[float]) -> float:
        if len(values) == 1:
            return values[0]
        held = math.fsum(part.share for part in self.parts.values())
        shares = [part.share for part in self.parts.values()]
        return math.fsum(share * value for share, value in zip(shares, values, strict=True)) / held if held else 0.0

    def pseudo_squares(self, strata: Strata) -> float:
        """The sum of squares, about the mean, of the pseudo-scores of *strata*, which may be a part of all.

        The pseudo-score of a subject that passed is its truth; of a held back one it is ``slope * score + shift``, and of an audited one
        that and what the truth differs from it, as often as it stands for others.
        """
        passed = strata.passed
        squares = passed.xx + passed.count * (passed.x - self.mean) ** 2
        squares += sum(self.parts[name].pseudo_squares(group, self.mean) for name, group in strata.groups.items())
        return max(0.0, float(squares))

    def variance(self, strata: Strata) -> float:
        """The variance of the mean of pseudo-scores over subjects, for subjects without repeated sessions."""
        n = strata.count
        known = math.fsum(part.share**2 * part.squares / part.count**2 for part in self.parts.values() if part.count)
        return max(0.0, self.pseudo_squares(strata) / (n - 1) / n - known + self.own)
