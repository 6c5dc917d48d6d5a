"""``score.corrected``: estimate of the mean if every subject had its truth metrics, from audits of held back subjects.

A difference estimator over two strata: the subjects that passed the gate, with a known truth, and the held back subjects, from which the
audits are a random sample. The slope uses the score of a held back subject (A. N. Angelopoulos, J. C. Duchi and T. Zrnic,
PPI++: efficient prediction-powered inference, 2023); the degrees of freedom are Satterthwaite's (Biometrics Bulletin 2, 1946, 110-114).
For truths of 0 or 1: Wilson intervals combined by the method of variance estimates recovery (G. Zou and A. Donner, Statistics in
Medicine 27, 2008, 1693-1702).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dicast import ALL_METRICS
from dicast.toolkit.intervals import Z_95, wilson

from .costs import AuditCosts, Audited
from .rates import audit_rates
from .sessions import AuditSessions
from .strata import LEAST, LEAST_OF_TWO, Estimate, Part, Strata

LEAST_OF_GROUP = {True: 1, False: 3}
"""Least number of audits of each group, if every truth is 0 or 1 (True) and otherwise (False)."""

FEW, TINY = 20, 1e-12
"""Number of sessions below which the variance itself is uncertain, and the mean square up to which truths count as equal."""


class Corrected:
    """Corrected means of *labels*, from a run's subjects as they are judged, in memory that does not grow with them.

    It is the ``estimator`` of the gate's key ``corrected``.

    :param rate: the share of held back subjects that are audited.
    :param rates: the shares of some groups, if held back subjects are in groups.
    """

    rates = staticmethod(audit_rates)

    def __init__(self, labels: Sequence[str], rate: float, rates: Mapping[str, float] | None = None) -> None:
        self._labels, self._rate, self._rates = labels, rate, rates
        self._strata = {label: Strata() for label in labels}
        self._without_session = {label: Strata() for label in labels}
        self._sessions = {label: AuditSessions() for label in labels}
        self._costs = AuditCosts()
        self._skipped = 0

    def add(self, subjects: Iterable[Mapping[str, Any]]) -> None:
        """Add subjects: ``session_id``, ``state`` (passed, held, audited or skipped), ``score``, ``truths`` by label, ``costs``."""
        for subject in subjects:
            state, score, session = subject["state"], subject["score"], subject["session_id"]
            group = subject.get("stratum", "")
            if state == "skipped":
                self._skipped += 1
                continue
            self._costs.add(state, subject["costs"])
            for label, strata in self._strata.items():
                truth = subject["truths"].get(label)
                counts = strata.add(state, score, truth, group)
                if counts and session is None:
                    self._without_session[label].add(state, score, truth, group)
                elif counts:
                    self._sessions[label].add(session, state, score, truth, group)

    def finish(self, means: Mapping[str, float | None]) -> dict[str, Any]:
        """Return ``corrected`` and ``reasons`` by label, ``cost`` and ``audit``.

        :param means: the uncorrected mean of each label.
        """
        result: dict[str, Any] = {"corrected": {}, "reasons": {}}
        for label in self._labels:
            corrected, reason = self._correct(label, means.get(label))
            result["corrected"][label] = corrected
            if reason is not None:
                result["reasons"][label] = reason
        strata = self._strata[ALL_METRICS]
        if strata.held_back and (missing_groups := (self._rates or {}).keys() - strata.groups.keys()):
            names = ", ".join(map(repr, sorted(strata.groups)))
            logging.getLogger(__name__).warning(
                "scoring.audit.strata: no subject that the proxies held back is in the group %s; the groups are %s",
                " or ".join(map(repr, sorted(missing_groups))),
                names,
            )
        estimate = Estimate.of(strata, slope=True) if strata.count and strata.audited > 1 else None
        spread = None if estimate is None else strata.spread()
        parts = {} if estimate is None else estimate.parts
        spent = self._costs.document(strata.count, strata.held_back, self._rate, spread, self._audits(parts))
        return {**result, **spent}

    def _audits(self, parts: Mapping[str, Part]) -> dict[str, Audited] | None:
        """Return the figures of the audits of each group; None without any."""
        rates = self._rates or {}
        audits = {name: Audited(part.share, part.tau2, rates.get(name, self._rate)) for name, part in parts.items()}
        return audits or None

    def _correct(self, label: str, plain: float | None) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        strata, sessions = self._strata[label], self._sessions[label]
        n, m, held_back = strata.count, strata.audited, strata.held_back
        if self._skipped:
            message = (
                f"{self._skipped:,} subjects passed the gate but did not get their truth metrics, for lack of budget"
            )
            return None, {"reason": "truths_skipped", "message": message}
        if n < 2 or plain is None:
            return None, {
                "reason": "too_few_subjects",
                "message": f"{n:,} subjects have a score; at least two are needed",
            }
        repeated = sessions.has_repeats()
        is_binary = strata.is_binary and not repeated
        if held_back and m < (LEAST_OF_TWO if is_binary else LEAST):
            return None, self._too_few(strata)
        if unaudited := [
            name for name, group in strata.groups.items() if group.audits.count < LEAST_OF_GROUP[is_binary]
        ]:
            return None, self._too_few_of(unaudited, strata)
        if is_binary:
            estimate, degrees = Estimate.of(strata, slope=False), None
            low, high = stratified_wilson(strata)
            variance, method = estimate.variance(strata), "stratified-wilson"
        else:
            estimate, method = Estimate.of(strata, slope=True), "general"
            variance, degrees = (
                _clustered_variance(strata, self._without_session[label], estimate, sessions)
                if repeated
                else _independent_variance(strata, estimate)
            )
            if degrees is None:
                message = "all subjects, or all audited subjects, are of one session; at least two sessions are needed"
                return None, {"reason": "too_few_sessions", "message": message}
            low, high = _interval(estimate.mean, variance, degrees)
        return {
            "mean": estimate.mean,
            "ci_low": low,
            "ci_high": high,
            "method": method,
            "n_audited": m,
            "held_back": held_back,
            "lambda": estimate.slope,
            "ess": strata.spread() / variance if variance > 0 else None,
            "plain_bias": plain - estimate.mean,
            "plain_bias_low": plain - high,
            "plain_bias_high": plain - low,
            **self._of_groups(strata, estimate),
            **_notes(strata, estimate, None if is_binary or not repeated else degrees),
        }, None

    def _of_groups(self, strata: Strata, estimate: Estimate) -> dict[str, Any]:
        """Return the estimate of each group, if rates of groups are set."""
        if self._rates is None:
            return {}
        return {
            "strata": {
                name: {
                    "n_audited": int(part.count),
                    "held_back": int(strata.groups[name].subjects.count),
                    "lambda": part.slope,
                    "rate": self._rates.get(name, self._rate),
                }
                for name, part in sorted(estimate.parts.items())
            }
        }

    def _too_few_of(self, groups: Sequence[str], strata: Strata) -> dict[str, Any]:
        names = ", ".join(repr(name) for name in groups[:3])
        least = LEAST_OF_GROUP[False]
        message = f"groups with fewer than {least} audits: {names}{' …' if len(groups) > 3 else ''}; audit these groups at a higher rate (strata.rates)"
        counts = {"n_audited": strata.audited, "held_back": strata.held_back, "subjects": None}
        return {"reason": "too_few_audits", "message": message, **counts}

    def _too_few(self, strata: Strata) -> dict[str, Any]:
        m, held_back, rate = strata.audited, strata.held_back, self._rate
        needed = math.ceil(LEAST / (strata.share_held * rate)) if rate else None
        advice = (
            f"use about {needed:,} subjects for {LEAST} audits, or a higher rate" if needed else "set a rate above 0"
        )
        message = f"{m:,} of {held_back:,} held back subjects were audited; {advice}"
        return {
            "reason": "too_few_audits",
            "message": message,
            "n_audited": m,
            "held_back": held_back,
            "subjects": needed,
        }


def _notes(strata: Strata, estimate: Estimate, degrees: float | None) -> dict[str, Any]:
    """Return ``notes`` on why the interval may be too narrow; empty without a reason. *degrees* are set for repeated sessions only."""
    notes = []
    uniform = [
        name for name, part in estimate.parts.items() if part.squares <= TINY * part.count and not strata.is_binary
    ]
    if uniform:
        rare = max(3 / estimate.parts[name].count for name in uniform)
        notes.append(
            f"audits_alike: the truth differs from the score by the same amount in every audit; up to {min(1.0, rare):.0%} of the held back subjects may differ by another amount".replace(
                "%", " %"
            )
        )
    if degrees is not None and degrees < FEW:
        notes.append(
            f"few_sessions: the audits come from few sessions ({degrees:.0f} degrees of freedom); below {FEW} the interval is rough"
        )
    return {"notes": notes} if notes else {}


def _independent_variance(strata: Strata, estimate: Estimate) -> tuple[float, float | None]:
    """Return the variance of a mean over independent subjects, and its degrees of freedom."""
    variance = estimate.variance(strata)
    audits = [(part.audit_variance, part.degrees) for part in estimate.parts.values()]
    return variance, _degrees(variance, audits, strata.count - 1)


def _clustered_variance(
    strata: Strata, unshared: Strata, estimate: Estimate, sessions: AuditSessions
) -> tuple[float, float | None]:
    """Return the variance of a mean over subjects that share sessions, and its degrees of freedom; None as degrees below two sessions.

    :param unshared: the subjects without a session; each counts as a session.
    """
    parts = {name: (part.slope, part.shift, part.weight) for name, part in estimate.parts.items()}
    clusters, audited, squares = sessions.squares(estimate.mean, parts)
    clusters, audited = clusters + unshared.count, audited + unshared.audited
    if clusters < 2 or (strata.held_back and audited < 2):
        return 0.0, None
    squares += estimate.pseudo_squares(unshared)
    variance = clusters / (clusters - 1) * squares / strata.count**2
    return variance, _degrees(variance, [(estimate.audit_variance, audited - 1)], clusters - 1)


def _degrees(variance: float, audits: Sequence[tuple[float, float]], rest_degrees: float) -> float:
    """Return Satterthwaite's degrees of freedom of a variance.

    :param audits: the parts of the variance that come from audits, each with its degrees of freedom.
    :param rest_degrees: the degrees of freedom of the rest.
    """
    audit_variance = math.fsum(part for part, _ in audits)
    parts = (variance - audit_variance) ** 2 / rest_degrees + math.fsum(
        part**2 / degrees for part, degrees in audits if part
    )
    return variance**2 / parts if parts > 0 else rest_degrees


def _interval(mean: float, variance: float, degrees: float) -> tuple[float, float]:
    from scipy.special import stdtrit  # type: ignore[import-untyped]  # 100 ms; only the end of a run with audits needs it

    half = float(stdtrit(degrees, 0.975)) * math.sqrt(variance)
    return max(0.0, mean - half), min(1.0, mean + half)


def stratified_wilson(strata: Strata) -> tuple[float, float]:
    """Return the interval of a mean of truths that are 0 or 1, known for all passed and for the audited subjects."""
    passed = strata.passed
    counts = [(passed.count, passed.x, passed.count)]
    counts += [(group.subjects.count, group.audits.y, group.audits.count) for group in strata.groups.values()]
    return combined_wilson([stratum for stratum in counts if stratum[0]])


def combined_wilson(strata: Sequence[tuple[float, float, float]], z: float = Z_95) -> tuple[float, float]:
    """Return the interval of a mean over *strata*: the size of each, its rate, and the number of known truths behind the rate.

    The sizes are random too, which gives the last term: with two strata ``z^2 (p1 - p2)^2 w (1 - w) / n``.
    """
    n = sum(size for size, _, _ in strata)
    mean = sum(size / n * rate for size, rate, _ in strata)
    below = above = 0.0
    for size, rate, sample in strata:
        low, high = wilson(rate, sample, z)
        below += (size / n * (rate - low)) ** 2
        above += (size / n * (high - rate)) ** 2
    if len(strata) > 1:
        sizes = z * z * math.fsum(size / n * (rate - mean) ** 2 for size, rate, _ in strata) / n
        below, above = below + sizes, above + sizes
    return max(0.0, mean - math.sqrt(below)), min(1.0, mean + math.sqrt(above))
