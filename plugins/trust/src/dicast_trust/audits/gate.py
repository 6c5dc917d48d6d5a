"""Key ``corrected`` of a gate: compare the mean that audits have corrected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from .corrected import Corrected

if TYPE_CHECKING:
    from dicast.reporting import Clause, Finding, GatedFile, GatedRun

_RULES = ("min_score", "max_score")


@attrs.frozen
class CorrectedMean:
    """Compares the corrected mean with ``min_score`` and ``max_score``.

    :param corrected: compare the mean as corrected by audits, of ``metrics`` or of a truth metric; it needs ``scoring.audit``.
    """

    estimator: ClassVar[type[Corrected]] = Corrected
    """The class with which the kernel estimates the corrected means of a run with audits."""

    corrected: bool = False

    @property
    def label_key(self) -> None:
        """None: ``min_score`` and ``max_score`` make the clause a rule about one label."""

    def faults(self, clause: Clause, file: GatedFile) -> Iterator[tuple[str, str]]:
        """Yield the fault of a clause on a corrected mean that no audit corrects."""
        if not self.corrected:
            return
        if clause.min_score is None and clause.max_score is None:
            yield "corrected", "corrected needs min_score or max_score in the clause: add one"
        elif clause.bound == "anytime":
            yield "bound", "a corrected mean has no interval at any time: set bound: interval"
        elif not file.has_audit:
            yield "corrected", "corrected needs audits: add scoring: {audit: {rate: 0.05}}"
        elif file.on is not None and file.on not in file.audited:
            audited = ", ".join(file.audited) or "metrics"
            yield "corrected", f"audits correct the mean of {audited}, not of {file.on!r}"

    def decide(self, findings: Sequence[Finding], run: GatedRun) -> Sequence[Finding]:
        """Return *findings*, with the findings about the mean decided by the corrected mean."""
        if not self.corrected:
            return findings
        return [_corrected(finding, run) if finding.rule in _RULES else finding for finding in findings]


def _corrected(finding: Finding, run: GatedRun) -> Finding:
    corrected = run.figures.get("corrected")
    if corrected is None:
        cause = _cause(run.figures.get("reasons", {}))
        reason = f"the corrected mean of {run.shown_on} is unknown ({cause}): {finding.rule} is {float(finding.line):g}"
        return attrs.evolve(finding, value=None, passed=None, reason=reason, low=None, high=None)
    interval = corrected["ci_low"], corrected["ci_high"]
    return run.with_mean(finding, f"the corrected mean of {run.shown_on}", corrected["mean"], interval)


def _cause(reasons: Mapping[str, Any]) -> str:
    return str((reasons.get("corrected") or {}).get("message", "no reason is recorded"))
