"""Evaluation of a run's gate: passed, failed, or undecided."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

import attrs

from ...toolkit.json_values import MISSING
from ..contract.plugin_errors import describe_error, in_brackets, place_of
from ..plan.clauses import Answer, Clause, ComparedRuns, Finding, Gate, GatedRun
from ..plan.comparison import Ends, compare, distinct
from ..values import Basis, reaches
from ..values.errors import DicastError
from ..values.passes import TOLERANCE, shown_label
from .failure_words import failures_text
from .fold import Report
from .labels import Ending
from .statistics import confidence_interval, pass_rate, pass_rate_bounds, possible_means
from .tally import Watched

Document = dict[str, Any]
EARLY_STOP = "early_stop"
NONE: Mapping[str, Any] = MappingProxyType({})


def answered(
    gate: Gate,
    report: Report,
    coverage: float | None,
    ending: Ending,
    done: Mapping[str, Any] = NONE,
    compared: ComparedRuns | None = None,
) -> Document:
    """Return the gate's decision as ``gate``, and the reasons why the run is undecided as ``undecided``.

    *done* has the corrected figures, *compared* the runs of clauses with a baseline. Without a gate section the decision is None, and *coverage* alone can leave the run undecided.
    """
    if gate.clauses:
        decision = _gate_answer(gate, report, coverage, ending, (done, compared or ComparedRuns()))
        answer: Document = {"gate": decision, "undecided": decision["reasons"] if decision["passed"] is None else []}
    else:
        rule = _coverage(Clause(coverage_note="the default"), None, coverage)
        reasons = (
            [_unscored(report, report.labels, done)] if not report.scored else [] if rule.passed else [rule.reason]
        )
        answer = {"gate": None, "undecided": reasons}
    return as_it_ended(answer, ending.stopped)


def _gate_answer(
    gate: Gate,
    report: Report,
    coverage: float | None,
    ending: Ending,
    figures: tuple[Mapping[str, Any], ComparedRuns],
) -> Document:
    """Return the decision over all clauses: it fails if any rule fails; otherwise it is undecided if any rule is undecided."""
    done, compared = figures
    findings, unmet, answers, is_empty = list[Finding](), list[tuple[Answer, str]](), list[Answer](), True
    only = report.labels[0] if len(report.labels) == 1 else None
    for clause in gate.clauses:
        on = clause.on or only
        interval = ending.intervals.get(str(on))
        name = None if on is None else shown_label(done, on)
        rules = [_at_any_time(clause, rule, interval) for rule in _rules(clause, on, report, coverage, name)]
        rules = [attrs.evolve(rule, on=on) for rule in rules]
        if on in report.watched:
            run = GatedRun(on, clause.bound, done, _fingerprints(report), report.models, compared)
            rules = _with_parts(clause, rules, run)
        has_scores = _has_scores(report, on)
        is_empty = is_empty and not has_scores
        decided = rules[0].passed is not None and has_scores  # the first rule is coverage
        open_rules = [
            attrs.evolve(rule, passed=None, undecided="fail" if rule.undecided == "fail" else "exit3") for rule in rules
        ]
        final = [
            rule if decided or _fails_anyway(rule) else open_ for rule, open_ in zip(rules, open_rules, strict=True)
        ]
        findings += final
        unmet += ((end.counts_as, rule.reason) for rule, end in zip(rules, final, strict=True) if not rule.passed)
        answers += (end.counts_as for end in final)
    order: Sequence[Answer] = (False, None, True)  # failed rules come first
    reasons = [reason for _, reason in sorted(unmet, key=lambda item: order.index(item[0]))]
    if is_empty:
        reasons = [_unscored(report, [clause.on or only for clause in gate.clauses], done)]
    return {
        "passed": all_passed(answers),
        "reasons": reasons,
        "clauses": [_finding_json(finding) for finding in findings],
        **({"baselines": baselines} if (baselines := _baseline_ids(compared)) else {}),
    }


def _unscored(report: Report, labels: Iterable[str | None], done: Mapping[str, Any]) -> str:
    """Return the reason of a run without a score of *labels*, with the numbers of its failures by kind.

    It has the names of the labels if another label has scores.
    """
    kinds = dict(report.failures.kinds.most_common())
    counts, reason = failures_text(report.failures.figures() | {"failures": kinds}), "nothing was scored"
    empty = [label for label in dict.fromkeys(labels) if label is not None and not _has_scores(report, label)]
    if empty and any(_has_scores(report, label) for label in report.labels):
        reason = (
            f"{', '.join(shown_label(done, label) for label in empty)} {'has' if len(empty) == 1 else 'have'} no score"
        )
    return f"{reason}; failed: {counts}" if counts else reason


def _fails_anyway(rule: Finding) -> bool:
    """Return whether *rule* fails for every outcome of the subjects without a score: a pass rate with all open subjects passed."""
    return rule.rule == "min_pass_rate" and rule.passed is False


def _baseline_ids(compared: ComparedRuns) -> dict[str, str | None]:
    """Return the ids of the runs that clauses compare with, by the name in the clause; None for a name without a run."""
    return {name: None if run is None else run.run_id for name, run in compared.baselines.items()}


def _has_scores(report: Report, on: str | None) -> bool:
    """Return True if the label *on* has a score. Return True for any score of the run if *on* is None or not a label of any event."""
    watched = None if on is None else report.watched.get(on)
    return report.scored > 0 if watched is None else watched.scores.count + watched.scores.spared > 0


def as_it_ended(answer: Document, stopped: Mapping[str, object] | None) -> Document:
    """Return *answer*, but undecided if the run did not complete.

    An early stop counts as a completed run, because the file asks for it. So does a pause if the file has no gate.
    """
    reason, gate = None if stopped is None else stopped["reason"], answer["gate"]
    if reason in (None, EARLY_STOP) or (reason == "paused" and gate is None):
        return answer
    message = f"the run was not completed: {(stopped or NONE).get('shards', reason)}"
    previous = answer["undecided"] if gate is None else gate["reasons"]
    reasons = [message, *(reason_ for reason_ in previous if reason_ != message)]
    if gate is not None:
        clauses = [{**clause, "passed": None} for clause in gate["clauses"]]
        gate = {**gate, "passed": None, "reasons": reasons, "clauses": clauses}
    return {"gate": gate, "undecided": reasons}


def undecided_without(answer: Document, results: Mapping[str, Any]) -> Document:
    """Return *answer*, but undecided if a result among *results* is missing: ``aggregates`` and ``comparison``. A gate that failed stays failed."""
    parts = (results["aggregates"], results["comparison"] or {})
    reasons = [f"{label} has no result" for part in parts for label, result in part.items() if result is None]
    gate = answer["gate"]
    if not reasons or (gate is not None and gate["passed"] is False):
        return answer
    if gate is not None:
        gate = {**gate, "passed": None, "reasons": [*gate["reasons"], *reasons]}
    return {"gate": gate, "undecided": [*answer["undecided"], *reasons]}


def all_passed(answers: Collection[Answer]) -> Answer:
    """Return the decision of a gate whose parts have these *answers*."""
    return False if False in answers else None if None in answers else True


def _finding_json(finding: Finding) -> Document:
    is_shown = {"undecided": finding.passed is None and finding.undecided != "exit3", "open": finding.open > 0}
    excluded = ["reason", *(name for name, shown in is_shown.items() if not shown)]
    return attrs.asdict(finding, filter=attrs.filters.exclude(*excluded))


def _rules(
    clause: Clause, on: str | None, report: Report, coverage: float | None, name: str | None
) -> Iterator[Finding]:
    """Yield the finding of each rule of *clause* about the label *on*. The findings have its *name* for a reader in its place."""
    watched = None if on is None else report.watched.get(on)
    if watched is not None:
        coverage = report.coverage(str(on))
    yield _coverage(clause, name, coverage)
    if watched is None:
        return
    bounded = on not in report.criteria and on not in report.raw
    for rule, line, must_exceed in (("min_score", clause.min_score, True), ("max_score", clause.max_score, False)):
        if line is not None:
            mean = report.mean(str(on))
            yield _mean(clause, str(name), watched, (rule, line, must_exceed), mean=mean, bounded=bounded)
    if clause.min_pass_rate is not None:
        yield _pass_rate(clause, str(name), watched, clause.min_pass_rate)
    if clause.min_basis is not None:
        yield _basis(str(name), report.basis(str(on)), clause.min_basis)


def _coverage(clause: Clause, on: str | None, coverage: float | None) -> Finding:
    line = clause.min_coverage
    passed = True if coverage is not None and coverage >= line - TOLERANCE else None
    prefix = "" if on is None else f"{on}: "
    if coverage is None:
        reason = f"{prefix}nothing was scored"
    else:
        value_text, line_text = distinct(line, coverage)
        reason = f"{prefix}coverage {value_text} is below min_coverage {line_text}"
        reason += f" ({clause.coverage_note})" if clause.coverage_note else ""
    return Finding(on, "min_coverage", line, coverage, passed, reason)


def _mean(
    clause: Clause, on: str, watched: Watched, rule: tuple[str, float, bool], *, mean: float | None, bounded: bool
) -> Finding:
    name, line, must_exceed = rule
    scores = watched.scores
    if not scores.count + scores.spared:
        return Finding(on, name, line, None, None, f"{on} has no score to compare with {name} {line:g}")
    if scores.spared and not bounded:
        suffix = (
            f"the proxies held back {scores.spared:,} subjects, whose raw values have no bounds: {name} is {line:g}"
        )
        return Finding(on, name, line, mean, None, suffix)
    if scores.spared:
        (least, low), (most, high) = possible_means(scores, mean or 0.0)
    else:
        least = most = mean or 0.0
        low, high, _ = confidence_interval(scores, least, bounded=bounded) or (None, None, None)
    suffix = f" (the proxies held back {scores.spared:,} subjects)" if scores.spared else ""
    passed, reason = _compare_with_line(
        clause, f"the mean of {on}", (least, most), (low, high), (name, line, must_exceed)
    )
    return Finding(on, name, line, mean, passed, reason + suffix, low, high)


def _at_any_time(clause: Clause, finding: Finding, interval: Mapping[str, Any] | None) -> Finding:
    """Return *finding*, decided by the *interval* that is valid at any time, if the clause asks for it or if the interval stopped the run.

    The decision of the interval applies only to the line of the early stop. After a stop, an interval for a fixed number of scores would be wrong.
    """
    stopped = interval is not None and interval["decision"] is not None and clause.bound == "interval"
    if stopped and finding.rule == "min_pass_rate":
        reason = f"the pass rate of {finding.on} has no interval, because the run stopped once its mean was decided: min_pass_rate is {finding.line:g}"
        return attrs.evolve(finding, passed=None, reason=reason, low=None, high=None)
    if not (clause.bound == "anytime" or stopped) or finding.rule not in ("min_score", "max_score"):
        return finding
    line, must_exceed = float(finding.line), finding.rule == "min_score"
    if interval is None:
        reason = f"no early stop has an interval of {finding.on}: {finding.rule} is {line:g}"
        return attrs.evolve(finding, passed=None, reason=reason, low=None, high=None)
    low, high = interval["low"], interval["high"]
    name = f"the mean of {finding.on}, at any time,"
    passed, reason_text = _compare_with_line(clause, name, (low, high), (low, high), (finding.rule, line, must_exceed))
    if interval["decision"] is not None and interval["at"] == line and not stopped:
        passed = (interval["decision"] == "above") == must_exceed
        reason_text = f"{name} is decided to be {interval['decision']} {finding.rule} {line:g}"
    return attrs.evolve(finding, passed=passed, reason=reason_text, low=low, high=high)


def _fingerprints(report: Report) -> Mapping[str, str]:
    fingerprints: Mapping[str, str] = report.started.get("fingerprints", {})
    return fingerprints


def _with_parts(clause: Clause, findings: list[Finding], run: GatedRun) -> list[Finding]:
    """Return *findings* after each plugin's part of *clause* has decided them in turn; a part that fails leaves the gate undecided."""
    for part in clause.parts:
        try:
            answer: object = part.decide(findings, run)
            decided = [*answer] if isinstance(answer, Iterable) else None
        except DicastError:
            raise
        except Exception as error:  # code of a plugin
            fault: str | None = f"decide raised {describe_error(error, type(part).__module__)}"
        else:
            fault = _answer_fault(answer if decided is None else decided, findings)
            fault = fault and f"{fault}{in_brackets(place_of(type(part).decide))}"
        if fault is None:
            findings = cast("list[Finding]", decided)
        else:
            fields: Any = attrs.fields(cast("Any", type(part)))
            key = part.label_key or next(field.name for field in fields if field.init)
            line = str(getattr(part, key, ""))
            findings = [*findings, Finding(run.on, key, line, None, None, f"{key}: {fault}")]
    return findings


def _answer_fault(decided: object, findings: list[Finding]) -> str | None:
    """Return the fault of the answer of a plugin's part to *findings*, or None."""
    if not isinstance(decided, list):
        return f"decide returned {decided!r:.100}, not the findings"
    wrong = next((finding for finding in decided if not isinstance(finding, Finding)), MISSING)
    if wrong is not MISSING:
        return f"decide returned {wrong!r:.100}, not a Finding"
    rules = {(finding.on, finding.rule) for finding in decided}
    lost = next((finding.rule for finding in findings if (finding.on, finding.rule) not in rules), None)
    return None if lost is None else f"decide drops the finding about {lost}; return [*findings, …]"


def _pass_rate(clause: Clause, on: str, watched: Watched, line: float) -> Finding:
    """Compare the pass rate with *line*. The rule passes or fails only if it does so for every outcome of the open subjects."""
    passes = watched.passes
    rate = pass_rate(passes) if watched.flagged else None
    if rate is None:
        return Finding(on, "min_pass_rate", line, None, None, f"no rule states which subjects pass {on}")
    (least, low), (most, high) = pass_rate_bounds(passes)
    value: Any = rate["value"]
    rule = ("min_pass_rate", line, True)
    passed, reason = _compare_with_line(clause, f"the pass rate of {on}", (least, most), (low, high), rule)
    suffix = f" ({passes.open:,} of {passes.count:,} subjects are open, and counted both ways)" if passes.open else ""
    return Finding(on, "min_pass_rate", line, value, passed, reason + suffix, low, high, open=passes.open)


def _basis(on: str, basis: Basis | None, least: Basis) -> Finding:
    if basis is None:
        return Finding(on, "min_basis", least, None, None, f"the basis of the scores of {on} is unknown")
    reason = f"a score of {on} has the basis {basis}, weaker than min_basis {least}"
    return Finding(on, "min_basis", least, basis, reaches(basis, least), reason)


def _compare_with_line(
    clause: Clause, name: str, point: Ends, interval: Ends, rule: tuple[str, float, bool]
) -> tuple[Answer, str]:
    """Compare both ends with the rule's line, by the clause's ``bound``; return the answer and the reason."""
    return compare(name, point, interval, rule, is_point=clause.bound == "point")
