"""Estimate of a mean from subjects that passed a gate and audits of groups of held back subjects."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from ..statistics.moments import Moments

LEAST, LEAST_OF_TWO = 10, 5
"""Least number of audits for an interval, in general and if every truth is 0 or 1."""


@attrs.define
class HeldBack:
    """Group of held back subjects: all *subjects* by score, and the *audits* by score and truth."""

    subjects: Moments = attrs.field(factory=Moments)
    audits: Moments = attrs.field(factory=Moments)

    @property
    def weight(self) -> float:
        """Number of held back subjects that an audit represents."""
        return self.subjects.count / self.audits.count if self.audits.count else 0.0


@attrs.define
class Strata:
    """Subjects of one label: *passed* subjects by truth, and held back subjects by *groups*, each with its rate of audits."""

    passed: Moments = attrs.field(factory=Moments)
    groups: dict[str, HeldBack] = attrs.field(factory=dict)
    is_binary: bool = True

    def add(self, state: str, score: float, truth: float | None, group: str = "") -> bool:
        """Add a subject; return False for a passed subject without a truth, which does not count."""
        if state == "passed":
            if truth is None:
                return False
            self.passed.add(truth)
        else:
            members = self.groups.setdefault(group, HeldBack())
            members.subjects.add(score)
            if state == "audited" and truth is not None:
                members.audits.add(score, truth)
        if truth is not None:
            self.is_binary = self.is_binary and truth in (0, 1)
        return True

    @property
    def count(self) -> int:
        """Number of subjects."""
        return int(self.passed.count) + self.held_back

    @property
    def held_back(self) -> int:
        """Number of held back subjects."""
        return int(sum(group.subjects.count for group in self.groups.values()))

    @property
    def audited(self) -> int:
        """Number of audited subjects."""
        return int(sum(group.audits.count for group in self.groups.values()))

    @property
    def share_held(self) -> float:
        """Share of held back subjects."""
        return self.held_back / self.count

    def spread(self) -> float:
        """Return the variance of the truth, with each audit weighted by the held back subjects that it represents."""
        passed, groups = self.passed, [group for group in self.groups.values() if group.audits.count]
        total = passed.count * passed.x + sum(group.subjects.count * group.audits.y for group in groups)
        mean = total / self.count
        squares = passed.xx + passed.count * (passed.x - mean) ** 2
        for group in groups:
            audits = group.audits
            squares += group.weight * (audits.yy + audits.count * (audits.y - mean) ** 2)
        return float(squares / self.count)


@attrs.frozen
class Part:
    """Estimate of one group: the truth is estimated as ``slope * score + shift``, with *squares* as the residual sum of squares.

    *share* is the group's share of all subjects, *count* the number of its audits, *weight* the number of subjects that an audit represents.
    """

    share: float
    count: float
    slope: float
    shift: float
    squares: float
    weight: float

    @classmethod
    def of(cls, group: HeldBack, count: int, *, slope: bool) -> Part:
        """Return the estimate of *group*, with the best slope or, without *slope*, a slope of 0.

        :param count: the number of all subjects.
        """
        audits, m = group.audits, group.audits.count
        best = min(1.0, max(0.0, audits.slope())) if slope and m >= LEAST else 0.0
        residual = audits.residual_squares(best)
        return cls(group.subjects.count / count, m, best, audits.y - best * audits.x, residual, group.weight)

    @property
    def tau2(self) -> float:
        """Residual variance of the truth."""
        return self.squares / (self.count - 1) if self.count > 1 else 0.0

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the residual variance."""
        return self.count - 1 - (self.slope > 0)

    @property
    def audit_variance(self) -> float:
        """Variance that the audits add to the mean."""
        return self.share**2 * self.squares / self.degrees / self.count if self.degrees > 0 else 0.0

    def pseudo_squares(self, group: HeldBack, mean: float) -> float:
        """Return the sum of squares, about *mean*, of the pseudo-scores of *group*, which may be a subset of this group."""
        subjects, audits, slope = group.subjects, group.audits, self.slope
        offset = audits.y - slope * audits.x - self.shift  # 0 over all audits of the group
        squares = slope * slope * subjects.xx + subjects.count * (slope * subjects.x + self.shift - mean) ** 2
        cross = slope * (audits.xy - slope * audits.xx)
        cross += audits.count * (slope * audits.x + self.shift - mean) * offset
        squares += 2 * self.weight * cross
        return squares + self.weight**2 * (audits.residual_squares(slope) + audits.count * offset * offset)


@attrs.frozen
class Estimate:
    """Corrected mean, with the estimate of each group of held back subjects."""

    mean: float
    parts: dict[str, Part]

    @classmethod
    def of(cls, strata: Strata, *, slope: bool) -> Estimate:
        """Return the estimate from *strata*; *slope* as in :meth:`Part.of`."""
        n = strata.count
        parts = {name: Part.of(group, n, slope=slope) for name, group in strata.groups.items()}
        mean = strata.passed.count / n * strata.passed.x
        mean += sum(
            part.share * (part.slope * strata.groups[name].subjects.x + part.shift) for name, part in parts.items()
        )
        return cls(mean, parts)

    @property
    def slope(self) -> float:
        """Slope; with several groups their mean, weighted by held back subjects."""
        return self._mean([part.slope for part in self.parts.values()])

    @property
    def tau2(self) -> float:
        """Residual variance of the truth; with several groups their mean, weighted by held back subjects."""
        return self._mean([part.tau2 for part in self.parts.values()])

    @property
    def audit_variance(self) -> float:
        """Variance that the audits add to the mean."""
        return math.fsum(part.audit_variance for part in self.parts.values())

    def _mean(self, values: Sequence[float]) -> float:
        if len(values) == 1:
            return values[0]
        share_held = math.fsum(part.share for part in self.parts.values())
        shares = [part.share for part in self.parts.values()]
        return (
            math.fsum(share * value for share, value in zip(shares, values, strict=True)) / share_held
            if share_held
            else 0.0
        )

    def pseudo_squares(self, strata: Strata) -> float:
        """Return the sum of squares, about the mean, of the pseudo-scores of *strata*, which may be a subset of all subjects.

        The pseudo-score of a passed subject is its truth; of a held back subject it is ``slope * score + shift``. An audited subject adds the
        residual of its truth, times its weight.
        """
        passed = strata.passed
        squares = passed.xx + passed.count * (passed.x - self.mean) ** 2
        squares += sum(self.parts[name].pseudo_squares(group, self.mean) for name, group in strata.groups.items())
        return max(0.0, float(squares))

    def variance(self, strata: Strata) -> float:
        """Return the variance of the mean of pseudo-scores over subjects, for subjects without repeated sessions."""
        n = strata.count
        sampled = math.fsum(part.share**2 * part.squares / part.count**2 for part in self.parts.values() if part.count)
        return max(0.0, self.pseudo_squares(strata) / (n - 1) / n - sampled + self.audit_variance)
