"""``score.corrected``: the mean that a run would have, had every subject been given its truth metrics, from those that audits looked at.

A difference estimator over two strata: the subjects that passed the gate, whose truth is known, and those that it held back, of which the
audits are a random sample. The slope makes use of the score that a held back subject has (A. N. Angelopoulos, J. C. Duchi and T. Zrnic,
PPI++: efficient prediction-powered inference, 2023); the degrees of freedom are Satterthwaite's (Biometrics Bulletin 2, 1946, 110-114).
Where truths are 0 or 1: Wilson intervals combined by the method of variance estimates recovery (G. Zou and A. Donner, Statistics in
Medicine 27, 2008, 1693-1702).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from .audit_costs import AuditCosts
from .audit_sessions import AuditSessions
from .moments import Moments

Z = 1.959963984540054
"""The 97.5 % quantile of the standard normal distribution."""

LEAST, LEAST_OF_TWO = 10, 5
"""How many audits an interval takes, in general and where every truth is 0 or 1."""

METRICS = "metrics"


@attrs.define
class Strata:
    """What is known of one label: *passed* subjects by truth, *held* back ones by score, *audited* ones by score and truth."""

    passed: Moments = attrs.field(factory=Moments)
    held: Moments = attrs.field(factory=Moments)
    audited: Moments = attrs.field(factory=Moments)
    is_binary: bool = True

    def add(self, state: str, score: float, truth: float | None) -> bool:
        """Count a subject; whether it counts: one that passed and has no truth does not."""
        if state == "passed":
            if truth is None:
                return False
            self.passed.add(truth)
        else:
            self.held.add(score)
        if state == "audited" and truth is not None:
            self.audited.add(score, truth)
        if truth is not None:
            self.is_binary = self.is_binary and truth in (0, 1)
        return True

    @property
    def count(self) -> int:
        """How many subjects there are."""
        return int(self.passed.count + self.held.count)

    @property
    def share_held(self) -> float:
        """Which share of them was held back."""
        return self.held.count / self.count

    def spread(self) -> float:
        """The variance of the truth, where an audited subject stands for as many as were held back for each."""
        passed, audited = self.passed, self.audited
        each = self.held.count / audited.count if audited.count else 0.0
        mean = (passed.count * passed.x + self.held.count * audited.y) / self.count
        squares = passed.xx + passed.count * (passed.x - mean) ** 2
        squares += each * (audited.yy + audited.count * (audited.y - mean) ** 2)
        return float(squares / self.count)


@attrs.frozen
class Estimate:
    """A corrected mean: *slope* is how much of the score is made use of, *shift* what is added to it, *tau2* the variance of what is left."""

    mean: float
    slope: float
    shift: float
    tau2: float
    squares: float
    own: float

    @classmethod
    def of(cls, strata: Strata, *, slope: bool) -> Estimate:
        """The estimate from *strata*, with the slope that does best or, without *slope*, with 0."""
        audited, share = strata.audited, strata.share_held
        m = audited.count
        best = min(1.0, max(0.0, audited.slope())) if slope and m >= LEAST else 0.0
        shift = audited.y - best * audited.x
        left = audited.residual_squares(best)
        mean = (1 - share) * strata.passed.x + share * (best * strata.held.x + shift)
        degrees = m - 1 - (best > 0)
        own = share * share * left / degrees / m if degrees > 0 else 0.0
        return cls(mean, best, shift, left / (m - 1) if m > 1 else 0.0, left, own)

    def pseudo_squares(self, strata: Strata, each: float) -> float:
        """The sum of squares, about the mean, of the pseudo-scores of *strata*, which may be a part of all: in these an audit counts for *each*.

        The pseudo-score of a subject that passed is its truth; of a held back one it is ``slope * score + shift``, and of an audited one
        that and *each* times what the truth differs from it.
        """
        passed, held, audited, slope = strata.passed, strata.held, strata.audited, self.slope
        off = audited.y - slope * audited.x - self.shift  # of all audited it is 0
        squares = passed.xx + passed.count * (passed.x - self.mean) ** 2
        squares += slope * slope * held.xx + held.count * (slope * held.x + self.shift - self.mean) ** 2
        both = slope * (audited.xy - slope * audited.xx)
        both += audited.count * (slope * audited.x + self.shift - self.mean) * off
        squares += 2 * each * both + each * each * (audited.residual_squares(slope) + audited.count * off * off)
        return max(0.0, float(squares))

    def variance(self, strata: Strata) -> float:
        """The variance of the mean of pseudo-scores over subjects, for subjects without repeated sessions."""
        n, m = strata.count, strata.audited.count
        squares = self.pseudo_squares(strata, strata.held.count / m if m else 0.0)
        others = squares / (n - 1) / n - (strata.share_held**2 * self.squares / m**2 if m else 0.0)
        return max(0.0, others + self.own)


class Corrected:
    """Takes a run's subjects as they are judged, and corrects the mean of each of *labels*, in memory that does not grow with them.

    It has the entry point ``trust`` in the group ``dicast.corrections``. *rate* is the share of held back subjects that are audited.
    """

    def __init__(self, labels: Sequence[str], rate: float) -> None:
        self._labels, self._rate = labels, rate
        self._strata = {label: Strata() for label in labels}
        self._alone = {label: Strata() for label in labels}
        self._sessions = {label: AuditSessions() for label in labels}
        self._costs = AuditCosts()
        self._skipped = 0

    def add(self, subjects: Iterable[Mapping[str, Any]]) -> None:
        """Take subjects: ``session_id``, ``state`` (passed, held, audited or skipped), ``score``, ``truths`` by label, ``costs``."""
        for subject in subjects:
            state, score, session = subject["state"], subject["score"], subject["session_id"]
            if state == "skipped":
                self._skipped += 1
                continue
            self._costs.add(state, subject["costs"])
            for label, strata in self._strata.items():
                truth = subject["truths"].get(label)
                counts = strata.add(state, score, truth)
                if counts and session is None:
                    self._alone[label].add(state, score, truth)
                elif counts:
                    self._sessions[label].add(session, state, score, truth)

    def finish(self, means: Mapping[str, float | None]) -> dict[str, Any]:
        """What the means come to, of which the run has the plain ones: ``corrected`` and ``reasons`` by label, ``cost`` and ``audit``."""
        found: dict[str, Any] = {"corrected": {}, "reasons": {}}
        for label in self._labels:
            corrected, reason = self._correct(label, means.get(label))
            found["corrected"][label] = corrected
            if reason is not None:
                found["reasons"][label] = reason
        strata = self._strata[METRICS]
        estimate = Estimate.of(strata, slope=True) if strata.count and strata.audited.count > 1 else None
        spread = None if estimate is None else strata.spread()
        tau2 = None if estimate is None else estimate.tau2
        return {**found, **self._costs.document(strata.count, strata.held.count, self._rate, spread, tau2)}

    def _correct(self, label: str, plain: float | None) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        strata, sessions = self._strata[label], self._sessions[label]
        n, m, held = strata.count, int(strata.audited.count), int(strata.held.count)
        if self._skipped:
            message = (
                f"{self._skipped:,} subjects passed the gate and were not given their truth metrics, for want of budget"
            )
            return None, {"reason": "truths_skipped", "message": message}
        if n < 2 or plain is None:
            return None, {"reason": "too_few_subjects", "message": f"{n:,} subjects have a score; it takes two"}
        repeated = sessions.repeats()
        is_binary = strata.is_binary and not repeated
        if held and m < (LEAST_OF_TWO if is_binary else LEAST):
            return None, self._too_few(strata)
        if is_binary:
            estimate = Estimate.of(strata, slope=False)
            low, high = stratified_wilson(strata)
            variance, method = estimate.variance(strata), "stratified-wilson"
        else:
            estimate, method = Estimate.of(strata, slope=True), "general"
            variance, degrees = (
                _clustered(strata, self._alone[label], estimate, sessions) if repeated else _plain(strata, estimate)
            )
            if degrees is None:
                message = "the subjects, or those that were audited, are all of one session: it takes two"
                return None, {"reason": "too_few_sessions", "message": message}
            low, high = _interval(estimate.mean, variance, degrees)
        return {
            "mean": estimate.mean,
            "ci_low": low,
            "ci_high": high,
            "method": method,
            "n_audited": m,
            "held_back": held,
            "lambda": estimate.slope,
            "ess": strata.spread() / variance if variance > 0 else None,
            "plain_bias": plain - estimate.mean,
            "plain_bias_low": plain - high,
            "plain_bias_high": plain - low,
        }, None

    def _too_few(self, strata: Strata) -> dict[str, Any]:
        m, held, rate = int(strata.audited.count), int(strata.held.count), self._rate
        needed = math.ceil(LEAST / (strata.share_held * rate)) if rate else None
        about = f"about {needed:,} subjects give {LEAST}" if needed else "with a rate of 0 nobody is audited"
        message = f"{m:,} of {held:,} held back subjects were audited; {about}, or a higher rate"
        return {"reason": "too_few_audits", "message": message, "n_audited": m, "held_back": held, "subjects": needed}


def _plain(strata: Strata, estimate: Estimate) -> tuple[float, float | None]:
    """The variance of a mean whose subjects have nothing to do with each other, and its degrees of freedom."""
    variance = estimate.variance(strata)
    m = strata.audited.count - 1 - (estimate.slope > 0)
    return variance, _degrees(variance, estimate.own, strata.count - 1, m)


def _clustered(
    strata: Strata, alone: Strata, estimate: Estimate, sessions: AuditSessions
) -> tuple[float, float | None]:
    """The same where subjects share sessions, but for those *alone*: the variance is that of sums of pseudo-scores over sessions."""
    each = strata.held.count / strata.audited.count if strata.audited.count else 0.0
    clusters, audited, squares = sessions.squares(estimate.mean, estimate.slope, estimate.shift, each)
    clusters, audited = clusters + alone.count, audited + int(alone.audited.count)
    if clusters < 2 or (strata.held.count and audited < 2):
        return 0.0, None
    squares += estimate.pseudo_squares(alone, each)
    variance = clusters / (clusters - 1) * squares / strata.count**2
    return variance, _degrees(variance, estimate.own, clusters - 1, audited - 1)


def _degrees(variance: float, own: float, others: float, audits: float) -> float:
    """Satterthwaite's degrees of freedom of a variance, *own* of which comes from the audits."""
    parts = (variance - own) ** 2 / others + (own**2 / audits if own else 0.0)
    return variance**2 / parts if parts > 0 else others


def _interval(mean: float, variance: float, degrees: float) -> tuple[float, float]:
    from scipy.special import stdtrit  # type: ignore[import-untyped]  # 100 ms; only the end of a run with audits needs it

    half = float(stdtrit(degrees, 0.975)) * math.sqrt(variance)
    return max(0.0, mean - half), min(1.0, mean + half)


def wilson(rate: float, n: float, z: float = Z) -> tuple[float, float]:
    """Wilson's interval of a *rate* of *n* (Journal of the American Statistical Association 22, 1927, 209-212)."""
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return (max(0.0, centre - half) if rate > 0 else 0.0), (min(1.0, centre + half) if rate < 1 else 1.0)


def stratified_wilson(strata: Strata) -> tuple[float, float]:
    """The interval of a mean of truths that are 0 or 1, which are known of all that passed and of the audited alone."""
    passed, audited = strata.passed, strata.audited
    known = [(passed.count, passed.x, passed.count), (strata.held.count, audited.y, audited.count)]
    return combined_wilson([one for one in known if one[0]])


def combined_wilson(strata: Sequence[tuple[float, float, float]], z: float = Z) -> tuple[float, float]:
    """The interval of a mean over *strata*: the size of each, the rate that is known of it, and of how many that is known.

    Two strata at most; the sizes are random too, which is what the last term is.
    """
    n = sum(size for size, _, _ in strata)
    mean = sum(size / n * rate for size, rate, _ in strata)
    below = above = 0.0
    for size, rate, known in strata:
        low, high = wilson(rate, known, z)
        below += (size / n * (rate - low)) ** 2
        above += (size / n * (high - rate)) ** 2
    if len(strata) == 2:
        share = strata[0][0] / n
        sizes = z * z * (strata[0][1] - strata[1][1]) ** 2 * share * (1 - share) / n
        below, above = below + sizes, above + sizes
    return max(0.0, mean - math.sqrt(below)), min(1.0, mean + math.sqrt(above))
