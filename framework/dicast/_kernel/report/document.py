"""The document that ``dicast run --json`` prints, and the exit code it means."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs

from ..pipeline.clauses import Gate
from ..pipeline.sections import METRICS
from ..values import Cost, ReadCounts
from ..values.aggregation import Aggregation
from ..values.score import UNITS
from .fold import Report
from .gate import gate_document
from .read_counts import read_document
from .spool import Passes
from .statistics import CI_METHOD, RAW_CI_METHOD, aggregate_all, confidence_interval, pass_rate
from .tally import Tally

Document = dict[str, Any]

ENOUGH = 10
"""How many scores there have to be to wonder that all are equal."""


def document(
    report: Report,
    aggregation: Aggregation,
    gate: Gate,
    *,
    stopped: Mapping[str, object] | None,
    intervals: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    counts: ReadCounts | None = None,
) -> Document:
    """Write down what *report* observed; ``sinks`` and ``ledger`` are added by the caller, who knows them.

    *intervals* are those that hold whenever the run is looked at, by label; *counts* are those of a source that counts.
    """
    report.close()
    score = _score(report, aggregation)
    if score is not None and stopped is not None and stopped.get("on") == score["label"]:
        score |= _as_stopped(score, intervals.get(score["label"]))
    due = report.scored + report.failed + report.unaffordable
    coverage = report.scored / due if due else None
    label = None if score is None else score["label"]
    done = {
        "run_id": report.run_id,
        "name": report.started.get("name"),
        "subjects": report.subjects,
        "read": read_document(report, counts),
        "scored": report.scored,
        "failed": report.failed,
        "skipped": report.subjects - report.judged,
        "unaffordable": report.unaffordable,
        "coverage": coverage,
        "failures": dict(sorted(report.failures.items())),
        "score": score,
        "metrics": _metrics(report, stopped),
        "judges": _judges(report),
        "models": {label: sorted(models) for label, models in sorted(report.models.items())},
        "cost": _amounts(report.spent),
        "spend_lost": _amounts(report.lost),
        "overruns": report.overruns,
        "throttled": dict(sorted(report.throttled.items())),
        "gate": None,
        "stopped": None if stopped is None else dict(stopped),
        "row_count": report.rows.count,
        "retry_summary": report.rows.retry_summary(),
        "security_level": report.started.get("security_level"),
        "determinism_level": report.started.get("determinism_level"),
        "warnings": [*_warnings(report, stopped, intervals), *report.evidence.warnings()],
        "aggregates": {},
        "comparison": None,
        "baseline": None,
        "broken": {},
        "sinks": {},
        "worst": report.worst(),
        "failed_subjects": report.failed_shown,
    }
    if report.corrections is not None:
        done = report.corrections.document(done)
    done["gate"] = gate_document(gate, report, label, coverage, stopped, intervals, done)
    return done


def disabled_document(name: str) -> Document:
    """The document of a run that the kill switch kept from beginning."""
    done = stopped_document(name, None)
    return done | {"gate": {"passed": True, "reasons": [], "clauses": []}, "disabled": True}


def stopped_document(name: str, reason: str | None) -> Document:
    """The document of a run that ended before it began."""
    stopped = None if reason is None else {"reason": reason}
    done = document(Report(), "median", Gate(), stopped=stopped)
    return done | {"run_id": None, "name": name, "ledger": None}


def _score(report: Report, aggregation: Aggregation) -> Document | None:
    counted = report.started.get("counted", ())
    if len(counted) != 1:
        return None
    watched = report.watched[counted[0]]
    mean = report.judges[counted[0]].mean()
    is_raw = counted[0] in report.raw
    interval = None if mean is None else confidence_interval(watched.scores, mean, bounded=not is_raw)
    low, high = interval or (None, None)
    return {
        "label": counted[0],
        "mean": mean,
        **raw_scale(report, counted[0], watched.passes),
        **_passes(watched.passes),
        "aggregation": aggregation if isinstance(aggregation, str) else attrs.asdict(aggregation),
        "aggregate": aggregate_all(watched.scores, aggregation),
        "ci_low": low,
        "ci_high": high,
        "ci_method": (RAW_CI_METHOD if is_raw else CI_METHOD) if interval else None,
        "by_tier": dict(report.tiers),
        "by_basis": report.judges[counted[0]].by_basis(),
        **({"calibrated": calibrated} if (calibrated := report.judges[counted[0]].calibrated) else {}),
    }


def _as_stopped(score: Document, interval: Mapping[str, Any] | None) -> Document:
    """The interval of the mean after a stop that depended on the scores; one for a fixed number of them would not hold, and the pass rate has none."""
    if interval is None:
        return {}
    ends = {"ci_low": interval["low"], "ci_high": interval["high"], "ci_method": interval["method"]}
    return {**ends, "passes": _without_ends(score["passes"])}


def _without_ends(passes: Document | None) -> Document | None:
    return passes and {**passes, "ci_low": None, "ci_high": None, "ci_method": None}


def _warnings(report: Report, stopped: Mapping[str, object] | None, intervals: Mapping[str, object]) -> list[Document]:
    """What makes one doubt the scores that count, though nothing failed."""
    found = []
    decided = None if stopped is None or "decision" not in stopped else stopped["on"]
    for label in report.started.get("counted", ()):
        if decided is not None and (decided != label or label not in intervals):
            message = f"the run stopped once {decided} was decided: the interval of {label} is for a number of subjects fixed beforehand, and rough"
            found.append({"kind": "stopped_early", "label": label, "message": message})
        tally, bases = report.judges[label], set(report.judges[label].bases)
        if tally.scored >= ENOUGH and tally.lowest == tally.highest:
            message = f"all {tally.scored:,} scores of {label} are {tally.lowest:.4g}: no subject differs from another"
            found.append({"kind": "equal_scores", "label": label, "message": message})
        if "heuristic" in bases and bases <= {"heuristic", "proxy"}:
            message = f"no score of {label} rests on more than heuristics"
            found.append({"kind": "only_heuristics", "label": label, "message": message})
    return found


def _metrics(report: Report, stopped: Mapping[str, object] | None) -> Document:
    judged = report.judges.get(METRICS, Tally()).kinds
    on = report.started.get("on", {})
    found = {
        label: {
            "mean": tally.mean(),
            **raw_scale(report, label, tally.passes),
            **_passes(tally.passes),
            "basis": tally.basis(),
            "scored": tally.scored,
            "total": sum(count for kind, count in judged.items() if not on.get(label) or kind in on[label]),
            "skipped": tally.skipped,
            "spared": tally.spared,
            "saved": _amounts(tally.saved),
        }
        for label, tally in report.metrics.items()
    }
    if stopped is not None and "decision" in stopped and (watched := found.get(str(stopped["on"]))) is not None:
        watched["passes"] = _without_ends(watched["passes"])
    return found


def raw_scale(report: Report, label: str, passes: Passes) -> Document:
    """Return what marks the figures of a raw *label*, and why it has no pass rate; nothing for any other label."""
    if label not in report.raw:
        return {}
    return {"scale": "raw"} | ({} if passes.has_line else {"reasons": ["raw_scale"]})


def _passes(passes: Passes) -> Document:
    """How many pass, and of how many, as a rate with its interval."""
    found = pass_rate(passes)
    return {"pass_rate": None if found is None else found.pop("value"), "passes": found}


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


REFUSED = ("refused_by_provider", "endpoint_unreachable")
"""Why a run stopped whose request may have been wrong from the beginning."""


def exit_code(done: Document) -> int:
    """The exit code a finished run means: the first that applies of 130, 2, 5, 4, 3, 1, 0."""
    reason = (done["stopped"] or {}).get("reason")
    if done.get("disabled"):
        return 0
    if reason == "interrupted":
        return 130
    if reason in REFUSED and not _began(done):
        return 2
    throttled = set(done["failures"]) <= {"throttled_no_heuristic"} and (done["failed"] or done["unaffordable"])
    if not done["scored"] and throttled:
        return 5
    if reason == "ledger_failed" or any(sink["lost"] for sink in done["sinks"].values()):
        return 4
    passed = done["gate"]["passed"]
    return 3 if passed is None else 0 if passed else 1


def _began(done: Document) -> bool:
    """Whether anything was judged, or spent."""
    judged = done["scored"] or any(one["scored"] for one in (*done["metrics"].values(), *done["judges"].values()))
    spent = [done[sums][unit] for sums in ("cost", "spend_lost") for unit in UNITS if unit in done[sums]]
    return bool(judged) or any(Cost(amount).amount != 0 for amount in spent)
