"""Whether a run has reached what its gate asks for: passed, failed, or undecided."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import attrs

from ..classes import frozen
from ..plan.clauses import Clause, Gate
from ..plan.sections import METRICS
from ..values import Basis, reaches
from ..values.passes import TOLERANCE
from .card import why_not
from .fold import Report
from .labels import Ending
from .statistics import confidence_interval, pass_rate, pass_rate_bounds, possible_means
from .tally import Watched

Document = dict[str, Any]
Answer = bool | None
"""True for passed, False for failed, None for undecided."""

EARLY_STOP = "early_stop"
NONE: Mapping[str, Any] = MappingProxyType({})


@frozen
class Finding:
    """What one rule of a clause has come to; *reason* says why it did not pass."""

    on: str | None
    rule: str
    line: float | str
    value: float | str | None
    passed: Answer
    reason: str
    low: float | None = None
    high: float | None = None


def answered(
    gate: Gate, report: Report, coverage: float | None, ending: Ending, done: Mapping[str, Any] = NONE
) -> Document:
    """Return what *gate* says of the run, as ``gate``, and why the run is undecided, as ``undecided``; *done* has what is corrected.

    A file without a gate has the answer None, and is undecided by its *coverage* alone.
    """
    if gate.clauses:
        found = _gate_answer(gate, report, coverage, ending, done)
        answer: Document = {"gate": found, "undecided": found["reasons"] if found["passed"] is None else []}
    else:
        rule = _coverage(Clause(), None, coverage)
        reasons = ["nothing was scored"] if not report.scored else [] if rule.passed else [rule.reason]
        answer = {"gate": None, "undecided": reasons}
    return as_it_ended(answer, ending.stopped)


def _gate_answer(
    gate: Gate, report: Report, coverage: float | None, ending: Ending, done: Mapping[str, Any]
) -> Document:
    """Return the answer of all clauses: one that failed fails the gate, and else one that is undecided leaves it so."""
    findings, unmet, answers, is_empty = list[Finding](), list[tuple[Answer, str]](), list[Answer](), True
    only = report.labels[0] if len(report.labels) == 1 else None
    for clause in gate.clauses:
        on = clause.on or only
        rules = [
            _corrected(clause, _at_any_time(clause, rule, ending.intervals.get(str(on))), done)
            for rule in _rules(clause, on, report, coverage)
        ]
        has_scores = _has_scores(report, on)
        is_empty = is_empty and not has_scores
        decided = rules[0].passed is not None and has_scores  # the first is coverage
        findings += rules if decided else [attrs.evolve(rule, passed=None) for rule in rules]
        unmet += ((rule.passed if decided else None, rule.reason) for rule in rules if not rule.passed)
        answers += (rule.passed if decided else None for rule in rules)
    reasons = [reason for _, reason in sorted(unmet, key=lambda item: item[0] is not False)]  # failed ones come first
    if is_empty:
        reasons = ["nothing was scored"]
    return {"passed": all_passed(answers), "reasons": reasons, "clauses": [_told(one) for one in findings]}


def _has_scores(report: Report, on: str | None) -> bool:
    """Return whether anything has a score of *on*, or where that is None or no label of any event, by every label."""
    watched = None if on is None else report.watched.get(on)
    return report.scored > 0 if watched is None else watched.scores.count + watched.scores.spared > 0


def as_it_ended(answer: Document, stopped: Mapping[str, object] | None) -> Document:
    """Return *answer*, undecided where the run did not end in order.

    An early stop is an end like any other, as the file asks for it; so is a pause where the file has no gate.
    """
    reason, gate = None if stopped is None else stopped["reason"], answer["gate"]
    if reason in (None, EARLY_STOP) or (reason == "paused" and gate is None):
        return answer
    message = f"the run did not end in order: {reason}"
    before = answer["undecided"] if gate is None else gate["reasons"]
    reasons = [message, *(one for one in before if one != message)]
    if gate is not None:
        clauses = [{**clause, "passed": None} for clause in gate["clauses"]]
        gate = {**gate, "passed": None, "reasons": reasons, "clauses": clauses}
    return {"gate": gate, "undecided": reasons}


def all_passed(answers: Collection[Answer]) -> Answer:
    """Return the answer of a gate whose parts have these *answers*."""
    return False if False in answers else None if None in answers else True


def _told(found: Finding) -> Document:
    return attrs.asdict(found, filter=attrs.filters.exclude("reason"))


def _rules(clause: Clause, on: str | None, report: Report, coverage: float | None) -> Iterator[Finding]:
    watched = None if on is None else report.watched.get(on)
    if watched is not None:
        coverage = watched.coverage()
    yield _coverage(clause, on, coverage)
    if watched is None:
        return
    bounded = on not in report.criteria and on not in report.raw
    for rule, line, above in (("min_score", clause.min_score, True), ("max_score", clause.max_score, False)):
        if line is not None:
            yield _mean(clause, str(on), watched, (rule, line, above), mean=report.mean(str(on)), bounded=bounded)
    if clause.min_pass_rate is not None:
        yield _pass_rate(clause, str(on), watched, clause.min_pass_rate)
    if clause.min_basis is not None:
        yield _basis(str(on), report.basis(str(on)), clause.min_basis)
    if clause.require_card is not None:
        why = why_not(clause, str(on), report.started.get("fingerprints", {}), report.models)
        value, passed = ("can gate", True) if why is None else (None, None)
        yield Finding(on, "require_card", str(clause.require_card), value, passed, why or "")


def _coverage(clause: Clause, on: str | None, coverage: float | None) -> Finding:
    line = clause.min_coverage
    passed = True if coverage is not None and coverage >= line - TOLERANCE else None
    of = "" if on is None else f"{on}: "
    if coverage is None:
        reason = f"{of}nothing was scored"
    else:
        shown, drawn = _apart(line, coverage)
        reason = f"{of}coverage {shown} is below min_coverage {drawn}"
    return Finding(on, "min_coverage", line, coverage, passed, reason)


def _mean(
    clause: Clause, on: str, watched: Watched, rule: tuple[str, float, bool], *, mean: float | None, bounded: bool
) -> Finding:
    name, line, above = rule
    scores = watched.scores
    if not scores.count + scores.spared:
        return Finding(on, name, line, None, None, f"{on} has no score to hold {name} {line:g} against")
    if scores.spared and not bounded:
        held = f"the proxies held back {scores.spared:,} subjects, whose raw values nothing bounds: {name} is {line:g}"
        return Finding(on, name, line, mean, None, held)
    if scores.spared:
        (least, low), (most, high) = possible_means(scores, mean or 0.0)
    else:
        least = most = mean or 0.0
        low, high, _ = confidence_interval(scores, least, bounded=bounded) or (None, None, None)
    held = f" (the proxies held back {scores.spared:,} subjects)" if scores.spared else ""
    passed, why = _held_against(clause, f"the mean of {on}", (least, most), (low, high), (name, line, above))
    return Finding(on, name, line, mean, passed, why + held, low, high)


def _at_any_time(clause: Clause, found: Finding, interval: Mapping[str, Any] | None) -> Finding:
    """*found*, by the *interval* that holds whenever it is looked at, where the clause asks for that, or a stop has decided by it.

    Its decision is about its own line. After such a stop an interval for a fixed number of scores does not hold.
    """
    stopped = interval is not None and interval["decision"] is not None and clause.bound == "interval"
    if stopped and found.rule == "min_pass_rate":
        reason = f"the pass rate of {found.on} has no interval, as the run stopped once its mean was decided: min_pass_rate is {found.line:g}"
        return attrs.evolve(found, passed=None, reason=reason, low=None, high=None)
    if not (clause.bound == "anytime" or stopped) or found.rule not in ("min_score", "max_score"):
        return found
    line, above = float(found.line), found.rule == "min_score"
    if interval is None:
        reason = f"no early stop has an interval of {found.on}: {found.rule} is {line:g}"
        return attrs.evolve(found, passed=None, reason=reason, low=None, high=None)
    low, high = interval["low"], interval["high"]
    what = f"the mean of {found.on}, at any time,"
    passed, why = _held_against(clause, what, (low, high), (low, high), (found.rule, line, above))
    if interval["decision"] is not None and interval["at"] == line and not stopped:
        passed = (interval["decision"] == "above") == above
        why = f"{what} is decided to be {interval['decision']} {found.rule} {line:g}"
    return attrs.evolve(found, passed=passed, reason=why, low=low, high=high)


def _corrected(clause: Clause, found: Finding, done: Mapping[str, Any]) -> Finding:
    """*found*, by the mean that audits have corrected, where the clause asks for that."""
    if not clause.corrected or found.rule not in ("min_score", "max_score"):
        return found
    line, above = float(found.line), found.rule == "min_score"
    entry = done["labels"][METRICS] if found.on == METRICS else done["metrics"][found.on]
    corrected = entry.get("corrected")
    if corrected is None:
        why = entry.get("reasons", NONE).get("corrected", NONE).get("message", "no reason is recorded")
        reason = f"the corrected mean of {found.on} is not known ({why}): {found.rule} is {line:g}"
        return attrs.evolve(found, value=None, passed=None, reason=reason, low=None, high=None)
    mean, low, high = corrected["mean"], corrected["ci_low"], corrected["ci_high"]
    what = f"the corrected mean of {found.on}"
    passed, why = _held_against(clause, what, (mean, mean), (low, high), (found.rule, line, above))
    return attrs.evolve(found, value=mean, passed=passed, reason=why, low=low, high=high)


def _pass_rate(clause: Clause, on: str, watched: Watched, line: float) -> Finding:
    """Compare the pass rate with *line*: the rule holds or fails for every outcome of the open subjects, else it is undecided."""
    passes = watched.passes
    found = pass_rate(passes) if watched.flagged else None
    if found is None:
        return Finding(on, "min_pass_rate", line, None, None, f"nothing says which subjects pass {on}")
    (least, low), (most, high) = pass_rate_bounds(passes)
    value: Any = found["value"]
    rule = ("min_pass_rate", line, True)
    passed, why = _held_against(clause, f"the pass rate of {on}", (least, most), (low, high), rule)
    left = f" ({passes.open:,} of {passes.count:,} subjects are open)" if passes.open else ""
    return Finding(on, "min_pass_rate", line, value, passed, why + left, low, high)


def _basis(on: str, found: Basis | None, least: Basis) -> Finding:
    if found is None:
        return Finding(on, "min_basis", least, None, None, f"nothing says what the scores of {on} rest on")
    reason = f"a score of {on} rests on {found}, which is weaker than min_basis {least}"
    return Finding(on, "min_basis", least, found, reaches(found, least), reason)


Ends = tuple[float | None, float | None]


def _held_against(
    clause: Clause, what: str, point: Ends, interval: Ends, rule: tuple[str, float, bool]
) -> tuple[Answer, str]:
    """Whether all from the one end to the other is on the right side of the rule's line, and why not."""
    name, line, above = rule
    low, high = point if clause.bound == "point" else interval
    what = what if clause.bound == "point" else f"the 95 % interval of {what}"
    if low is None or high is None:
        return None, f"{what} is not known, as it takes two sessions or more: {name} is {line:g}"
    *ends, drawn = _apart(line, low, high)
    shown = " to ".join(dict.fromkeys(ends))
    right = low >= line - TOLERANCE if above else high <= line + TOLERANCE
    wrong = high < line - TOLERANCE if above else low > line + TOLERANCE
    if right or wrong:
        return right, f"{what} is {shown}, {'below' if above else 'above'} {name} {drawn}"
    return None, f"{what} is {shown}, with {name} {drawn} in between"


def _apart(line: float, *values: float) -> list[str]:
    """*values* in 4 digits and *line* in up to 6, or all in as many as it takes to tell them from *line*."""
    digits = 4
    while digits < 17 and any(f"{value:.{digits}g}" == f"{line:.{digits}g}" for value in values if value != line):
        digits += 1
    return [*(f"{value:.{digits}g}" for value in values), f"{line:.{max(digits, 6)}g}"]
