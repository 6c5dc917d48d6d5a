"""Keys ``baseline``, ``max_drop`` and ``undecided`` of a gate: the mean may not drop by more than a limit below a baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, ClassVar, Literal

import attrs

from dicast import Results, Within

from .estimate import Estimate, more_pairs
from .faults import way_faults
from .label_changes import LabelChange, gated_label, held_back_text, label_changes, more_pairs_text, shared_labels

if TYPE_CHECKING:
    from dicast.reporting import Clause, Finding, GatedFile, GatedRun

TOLERANCE = 1e-9
"""Distance from the limit that counts as on the limit, as for the other rules of the gate."""

_OTHER_RULES = ("min_score", "max_score", "min_pass_rate", "min_basis")

_RECORDED = "recorded/"
"""Beginning of the labels with scores that another tool recorded; comparisons do not read them."""

Answer = bool | None

_INTERVAL = " for the whole interval (bound: interval)"
"""Words after the limit of a clause that compares an end of the interval with it."""


@attrs.frozen
class Regression:
    """Requires that the mean of a label does not drop by more than a limit below a baseline.

    :param baseline: the baseline: the name of a saved baseline, the id of a run, the name of a pipeline or of an experiment of the suite, ``last``,
        or a file of ``dicast baseline save --file``.
    :param max_drop: the largest drop of the mean that passes, 0 or more. It is required.
    :param undecided: the effect if the clause cannot be decided: ``pass``, the default under ``bound: test`` and ``point``; ``exit3``, the default
        under ``bound: interval``: the gate is undecided; ``fail``.
    """

    bounds: ClassVar[tuple[str, ...]] = ("test", "interval", "point")

    baseline: str | None = None
    max_drop: float | None = attrs.field(default=None, validator=Within(0, inf, "0 or more"))
    undecided: Literal["pass", "exit3", "fail"] | None = None

    @property
    def label_key(self) -> str | None:
        """``baseline``: a drop is about one label."""
        return None if self.baseline is None else "baseline"

    def faults(self, clause: Clause, file: GatedFile) -> Iterator[tuple[str, str]]:
        """Yield the faults of a clause without one of its keys, or with rules of its own next to the baseline."""
        if self.baseline is None:
            key = "max_drop" if self.max_drop is not None else "undecided"
            yield key, f"{key} needs a baseline: add baseline: NAME, such as baseline: last"
        elif self.max_drop is None:
            yield "baseline", "baseline needs max_drop, the largest drop of the mean that passes: add max_drop: 0.02"
        if file.has_unit_scale and self.max_drop is not None and self.max_drop >= 1:
            points = (
                f"; write {self.max_drop / 100:g} for {self.max_drop:g} point{'s' * (self.max_drop != 1)} of 100"
                if self.max_drop < 100
                else ""
            )
            yield "max_drop", f"scores are in [0, 1], so they cannot drop by more than {self.max_drop:g}{points}"
        if self.baseline is not None and str(clause.on).startswith(_RECORDED):
            yield "baseline", f"{clause.on} has the scores of another tool, which are not compared with a baseline"
        if rules := [rule for rule in _OTHER_RULES if getattr(clause, rule) is not None]:
            key = "baseline" if self.baseline is not None else "max_drop"
            named = ", ".join(f"{rule} ({file.places[rule]})" if rule in file.places else rule for rule in rules)
            fix = "write the clauses as a list, gate: [{…}, {…}], which replaces an included gate"
            yield key, f"a clause with a baseline has no other rule, but {named} is in the clause: {fix}"

    def decide(self, findings: Sequence[Finding], run: GatedRun) -> Sequence[Finding]:
        """Return *findings* and the finding about the drop."""
        if self.baseline is None or self.max_drop is None or not findings:
            return findings
        effect = self.undecided or ("exit3" if run.bound == "interval" else "pass")
        finding = attrs.evolve(
            findings[0],
            rule="max_drop",
            line=self.max_drop,
            value=None,
            passed=None,
            low=None,
            high=None,
            undecided=effect,
        )
        compared = run.compared
        baseline = compared.baselines.get(self.baseline, compared.current)
        if compared.current is None:
            reason = f"{run.shown_on} is not compared with {self.baseline}: the verdicts of this run cannot be read from its ledger"
            return [*findings, attrs.evolve(finding, reason=reason)]
        if baseline is None:
            reason = f"{run.shown_on}: there is no older run to compare with as {self.baseline!r}"
            return [*findings, attrs.evolve(finding, reason=reason)]
        if baseline is compared.current:
            reason = f"{run.shown_on}: the run is the baseline {self.baseline!r} itself"
            return [*findings, attrs.evolve(finding, passed=True, reason=reason)]
        return [*findings, self._decide(finding, run, baseline, compared.current)]

    def _decide(self, finding: Finding, run: GatedRun, baseline: Results, current: Results) -> Finding:
        """Return *finding*, decided by the change of the label from *baseline* to *current*."""
        against = f"{run.shown_on} against {self.baseline} (run {baseline.run_id})"
        label = gated_label(current, run.on)
        is_known = label in shared_labels(baseline, current)
        change = label_changes(baseline, current, labels=(label,))[label] if is_known else None
        if change is None:
            faults = [*way_faults(baseline, current, label)] or ["a run has no score of the label"]
        else:
            faults = [*change.faults]
        if change is None or faults:
            is_of_another = self._is_of_another(baseline, current) and [*way_faults(baseline, current, label)]
            of_pipeline = f" of another pipeline, {baseline.name}" if is_of_another else ""
            faults += [f"or name a run of {current.name} in `baseline`"] if is_of_another else []
            reason = f"{run.shown_on} is not compared with {self.baseline} (run {baseline.run_id}{of_pipeline}): {'; '.join(faults)}"
            return attrs.evolve(finding, passed=None, reason=reason)
        estimate = change.estimate
        finding = attrs.evolve(finding, value=estimate.mean, low=estimate.low, high=estimate.high)
        passed = self._answer(estimate, run.bound)
        return attrs.evolve(finding, passed=passed, reason=f"{against}: {self._words(change, passed, run.bound)}")

    def _is_of_another(self, baseline: Results, current: Results) -> bool:
        """Return whether *baseline* is a run of another pipeline than *current*, whose experiments belong to one pipeline."""
        return self.baseline != baseline.name and baseline.name.partition("/")[0] != current.name.partition("/")[0]

    def _answer(self, estimate: Estimate, bound: str) -> Answer:
        """Return whether the drop is within the limit, by *bound*; None if neither is known, or if held-back subjects could change the answer."""
        if estimate.ends is not None:
            least, most = (self._answer(end, bound) for end in estimate.ends)
            return least if least is most else None
        limit = -(self.max_drop or 0.0) - TOLERANCE
        mean, low, high = estimate.mean, estimate.low, estimate.high
        if bound == "interval":
            if low is not None and low >= limit:
                return True
            return False if high is not None and high < limit else None
        if mean is None:
            return None
        if mean >= limit:
            return True
        if bound == "point":
            return False
        return False if high is not None and high < 0 else None

    def _words(self, change: LabelChange, passed: Answer, bound: str) -> str:
        limit = self.max_drop or 0.0
        held_back = held_back_text(change.held_back, is_raw=change.is_raw)
        drop = "; ".join(
            filter(None, [held_back, change.figures, f"max_drop is {limit:g}{_INTERVAL * (bound == 'interval')}"])
        )
        if passed is not None:
            return f"{'no drop beyond the limit' if passed else 'dropped'}: {drop}"
        if held_back:
            return f"cannot tell: {drop}"
        mean = change.estimate.mean or 0.0
        missing = more_pairs(change.estimate, abs(mean + limit) if bound == "interval" else abs(mean))
        return f"cannot tell: {drop}" + (f"; {more_pairs_text(missing)}" if missing else "")
