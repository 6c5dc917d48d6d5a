"""Whether a run has reached what its gate asks for: passed, failed, or undecided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import attrs

from ..classes import frozen
from ..pipeline.clauses import Clause, Gate
from ..pipeline.sections import METRICS
from ..values import Basis, reaches
from .card import why_not
from .fold import Report
from .spool import TOLERANCE
from .statistics import confidence_interval, pass_rate, possible_means
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


def gate_document(
    gate: Gate,
    report: Report,
    label: str | None,
    coverage: float | None,
    stopped: Mapping[str, object] | None,
    intervals: Mapping[str, Mapping[str, Any]] = NONE,
    done: Mapping[str, Any] = NONE,
) -> Document:
    """What *gate* says of the run, whose score is about *label* and has this *coverage*; *done* has what is corrected.

    All clauses have to hold: one that failed fails the gate, and else one that is undecided leaves it so.
    """
    found, open_ends, answers = list[Finding](), list[tuple[Answer, str]](), list[Answer]()
    for clause in gate.clauses:
        on = clause.on or label
        rules = [
            _corrected(clause, _at_any_time(clause, one, intervals.get(str(on))), done)
            for one in _rules(clause, on, report, coverage)
        ]
        decided = rules[0].passed is not None and report.scored > 0  # the first is coverage
        found += rules if decided else [attrs.evolve(rule, passed=None) for rule in rules]
        open_ends += ((rule.passed if decided else None, rule.reason) for rule in rules if not rule.passed)
        answers += (rule.passed if decided else None for rule in rules)
    reasons = [
        reason for _, reason in sorted(open_ends, key=lambda one: one[0] is not False)
    ]  # what failed comes first
    if not report.scored:
        reasons = ["nothing was scored"]
    done = {"passed": _all(answers), "reasons": reasons, "clauses": [_told(one) for one in found], "given": gate.given}
    return as_it_ended(done, gate, stopped)


def as_it_ended(done: Document, gate: Gate, stopped: Mapping[str, object] | None) -> Document:
    """*done*, undecided where the run did not end in order.

    An early stop is an end like any other, since the file asks for it; a pause is one where the file has no gate.
    """
    reason = None if stopped is None else stopped["reason"]
    if reason in (None, EARLY_STOP) or (reason == "paused" and not gate.given):
        return done
    said = f"the run did not end in order: {reason}"
    clauses = [{**clause, "passed": None} for clause in done["clauses"]]
    return {
        **done,
        "passed": None,
        "reasons": [said, *(one for one in done["reasons"] if one != said)],
        "clauses": clauses,
    }


def _all(answers: list[Answer]) -> Answer:
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
    if mean is None and scores.count:  # a criterion's, of which no sum is kept
        mean = scores.trimmed(0)
    if scores.spared and not bounded:
        held = f"the proxies held back {scores.spared:,} subjects, whose raw values nothing bounds: {name} is {line:g}"
        return Finding(on, name, line, mean, None, held)
    if scores.spared:
        (least, low), (most, high) = possible_means(scores, mean or 0.0)
    else:
        least = most = mean or 0.0
        low, high = confidence_interval(scores, least, bounded=bounded) or (None, None)
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
    entry = (done.get("score") or NONE) if found.on == METRICS else done["metrics"][found.on]
    corrected = entry.get("corrected")
    if corrected is None:
        why = entry.get("reasons", NONE).get("corrected", NONE).get("message", "the score is another label's")
        reason = f"the corrected mean of {found.on} is not known ({why}): {found.rule} is {line:g}"
        return attrs.evolve(found, value=None, passed=None, reason=reason, low=None, high=None)
    mean, low, high = corrected["mean"], corrected["ci_low"], corrected["ci_high"]
    what = f"the corrected mean of {found.on}"
    passed, why = _held_against(clause, what, (mean, mean), (low, high), (found.rule, line, above))
    return attrs.evolve(found, value=mean, passed=passed, reason=why, low=low, high=high)


def _pass_rate(clause: Clause, on: str, watched: Watched, line: float) -> Finding:
    found: Any = pass_rate(watched.passes)
    if found is None or not watched.flagged:
        return Finding(on, "min_pass_rate", line, None, None, f"nothing says which subjects pass {on}")
    value, low, high = found["value"], found["ci_low"], found["ci_high"]
    rule = ("min_pass_rate", line, True)
    passed, why = _held_against(clause, f"the pass rate of {on}", (value, value), (low, high), rule)
    return Finding(on, "min_pass_rate", line, value, passed, why, low, high)


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
