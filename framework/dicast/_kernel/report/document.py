"""The document that ``dicast run --json`` prints, and the exit code it means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from ..aggregation import Aggregation
from ..model import Cost
from ..sections import METRICS, Gate
from .fold import Report, Tally
from .statistics import CI_METHOD, aggregate_all, confidence_interval

Document = dict[str, Any]


def document(
    report: Report,
    aggregation: Aggregation,
    gate: Gate,
    *,
    stopped: Mapping[str, object] | None,
) -> Document:
    """Write down what *report* observed; ``sinks`` and ``ledger`` are added by the caller, who knows them."""
    report.close()
    score = _score(report, aggregation)
    due = report.scored + report.failed + report.unaffordable
    coverage = report.scored / due if due else None
    return {
        "run_id": report.run_id,
        "name": report.started.get("name"),
        "subjects": report.subjects,
        "scored": report.scored,
        "failed": report.failed,
        "skipped": report.subjects - report.judged,
        "unaffordable": report.unaffordable,
        "coverage": coverage,
        "failures": dict(sorted(report.failures.items())),
        "score": score,
        "metrics": _metrics(report),
        "judges": _judges(report),
        "cost": _amounts(report.spent),
        "spend_lost": _amounts(report.lost),
        "overruns": report.overruns,
        "throttled": dict(sorted(report.throttled.items())),
        "gate": _gate(gate, score, coverage),
        "stopped": None if stopped is None else dict(stopped),
        "aggregates": {},
        "comparison": None,
        "baseline": None,
        "broken": {},
        "sinks": {},
        "worst": report.worst(),
        "failed_subjects": report.failed_shown,
    }


def disabled_document(name: str) -> Document:
    """The document of a run that the kill switch kept from beginning."""
    done = stopped_document(name, None)
    return done | {"gate": {"passed": True, "reasons": []}, "disabled": True}


def stopped_document(name: str, reason: str | None) -> Document:
    """The document of a run that ended before it began."""
    stopped = None if reason is None else {"reason": reason}
    done = document(Report(), "median", Gate(given=False), stopped=stopped)
    return done | {"run_id": None, "name": name, "ledger": None}


def _score(report: Report, aggregation: Aggregation) -> Document | None:
    counted = report.started.get("counted", ())
    if len(counted) != 1:
        return None
    mean = report.scores.trimmed(0) if report.scores.count else None
    interval = None if mean is None else confidence_interval(report.scores, mean)
    low, high = interval or (None, None)
    return {
        "label": counted[0],
        "mean": mean,
        "aggregation": aggregation if isinstance(aggregation, str) else attrs.asdict(aggregation),
        "aggregate": aggregate_all(report.scores, aggregation),
        "ci_low": low,
        "ci_high": high,
        "ci_method": CI_METHOD if interval else None,
        "by_tier": dict(report.tiers),
    }


def _metrics(report: Report) -> Document:
    judged = report.judges.get(METRICS, Tally()).kinds
    on = report.started.get("on", {})
    return {
        label: {
            "mean": tally.mean(),
            "scored": tally.scored,
            "total": sum(count for kind, count in judged.items() if not on.get(label) or kind in on[label]),
            "skipped": tally.skipped,
            "spared": tally.spared,
            "saved": _amounts(tally.saved),
        }
        for label, tally in report.metrics.items()
    }


def _amounts(sums: Mapping[str, Cost]) -> Document:
    return {unit: cost.decimal for unit, cost in sums.items()}


def _judges(report: Report) -> Document:
    return {
        label: {
            "mean": tally.mean(),
            "mean_confidence": tally.mean_confidence(),
            "scored": tally.scored,
            "total": tally.total,
            "escalated": tally.escalated,
            "fallbacks": dict(sorted(tally.fallbacks.items())),
        }
        for label, tally in report.judges.items()
        if label != METRICS
    }


def _gate(gate: Gate, score: Document | None, coverage: float | None) -> Document:
    reasons = []
    if coverage is None:
        reasons.append("nothing was scored")
    elif coverage < gate.min_coverage:
        reasons.append(f"coverage {coverage:.4g} is below min_coverage {gate.min_coverage:g}")
    if gate.min_score is not None:
        mean = None if score is None else score["mean"]
        if mean is None or mean < gate.min_score:
            shown = "there is no score" if mean is None else f"score {mean:.4g}"
            reasons.append(f"{shown}, min_score is {gate.min_score:g}")
    return {"passed": not reasons, "reasons": reasons}


def exit_code(done: Document, gate: Gate) -> int:
    """The exit code a finished run means: the first that applies of 130, 2, 5, 4, 3, 1, 0."""
    reason = (done["stopped"] or {}).get("reason")
    if done.get("disabled"):
        return 0
    if reason == "interrupted":
        return 130
    if reason == "refused_by_provider":
        spent = (*done["cost"].values(), *done["spend_lost"].values())
        return 3 if any(Cost(amount).amount != 0 for amount in spent) else 2
    throttled = set(done["failures"]) <= {"throttled_no_heuristic"} and (done["failed"] or done["unaffordable"])
    if not done["scored"] and throttled:
        return 5
    if reason == "ledger_failed" or any(sink["lost"] for sink in done["sinks"].values()):
        return 4
    if not done["scored"] or done["coverage"] < gate.min_coverage:
        return 3
    return 0 if done["gate"]["passed"] else 1
