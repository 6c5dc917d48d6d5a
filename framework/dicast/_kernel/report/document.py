"""The document that ``dicast run --json`` prints, and its exit code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from ..plan.clauses import ComparedRuns, Gate
from ..plan.sections import METRICS
from ..values import Cost, ReadCounts
from ..values.aggregation import Aggregation
from ..values.endpoint_errors import UNSUPPORTED
from ..values.passes import shown_label
from ..values.score import UNITS
from .fold import Report
from .gate import answered
from .labels import Ending, label_figures, raw_scale, score_figures
from .read_counts import read_document, read_warnings
from .recorded import recorded_figures
from .tally import Tally

Document = dict[str, Any]

ENOUGH = 10
"""Number of scores from which a warning is given if all are equal."""


def document(
    report: Report,
    aggregation: Aggregation,
    gate: Gate,
    *,
    stopped: Mapping[str, object] | None,
    intervals: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    counts: ReadCounts | None = None,
    compared: ComparedRuns | None = None,
) -> Document:
    """Return the document of a run from *report*. The caller adds ``sinks`` and ``ledger``.

    :param intervals: by label, intervals that are valid whenever the run is read.
    :param counts: the counts of a source that counts.
    :param compared: the run and the baselines of the gate's clauses.
    """
    report.close()
    ending = Ending(stopped, intervals)
    read = read_document(report, counts)
    done = {
        "run_id": report.run_id,
        "name": report.started.get("name"),
        "subjects": report.subjects,
        "read": read,
        "scored": report.scored,
        "failed": report.failed,
        "skipped": report.subjects - report.judged,
        "unaffordable": report.unaffordable,
        "coverage": report.share_scored,
        **report.failures.figures(),
        "score": score_figures(report, aggregation, ending),
        "labels": {label: label_figures(report, label, ending) for label in report.labels},
        "metrics": _metrics(report, ending),
        "judges": _judges(report),
        **recorded_figures(report.recorded),
        "models": {label: sorted(models) for label, models in sorted(report.models.items())},
        "adapted": {label: sorted(names) for label, names in sorted(report.adapted.items())},
        "assumed": list(report.started.get("assumed", ())),
        "cost": _amounts(report.spent),
        "spend_lost": _amounts(report.lost),
        "overruns": report.overruns.total(),
        **report.throttled.figures(),
        "gate": None,
        "undecided": [],
        "stopped": None if stopped is None else dict(stopped),
        "row_count": report.rows.count,
        "retry_summary": report.rows.retry_summary(),
        "security_level": report.started.get("security_level"),
        "determinism_level": report.started.get("determinism_level"),
        "aggregates": {},
        "comparison": None,
        "baseline": None,
        "broken": {},
        "sinks": {},
        "worst": report.lowest.listed(),
        "failed_subjects": report.failed_shown,
    }
    done["warnings"] = [
        *_warnings(report, done, intervals),
        *report.endings.warnings(report.started.get("task")),
        *report.evidence.warnings(),
        *read_warnings(read),
    ]
    if report.corrections is not None:
        done = report.corrections.document(done, is_weighted=bool(report.weights))
    return done | report.batches.figures() | answered(gate, report, report.share_scored, ending, done, compared)


def disabled_document(name: str) -> Document:
    """Return the document of a run that the kill switch prevented."""
    return stopped_document(name, None) | {"undecided": [], "disabled": True}


def stopped_document(name: str, reason: str | None) -> Document:
    """Return the document of a run that stopped before it started."""
    stopped = None if reason is None else {"reason": reason}
    done = document(Report(), "median", Gate(), stopped=stopped)
    return done | {"run_id": None, "name": name, "ledger": None}


def _warnings(report: Report, done: Document, intervals: Mapping[str, object]) -> list[Document]:
    """Return the warnings that cast doubt on the scores in the document *done* although nothing failed."""
    warnings, stopped = list[Document](), done["stopped"]
    limit = report.started.get("limit")
    if limit and report.subjects >= limit:
        subjects = "subject is" if limit == 1 else f"{limit:,} subjects are"
        message = f"only the first {subjects} judged (--limit or --head)"
        warnings.append({"kind": "limited", "message": message})
    if report.weights:
        message = "subjects have weights: means, medians, pass rates and their intervals use them; figures that would count each subject once are refused"
        warnings.append({"kind": "weights", "message": message})
    decided = None if stopped is None or "decision" not in stopped else stopped["on"]
    for label in report.started.get("counted", ()):
        name = shown_label(done, label)
        if decided is not None and (decided != label or label not in intervals):
            message = f"the run stopped once {shown_label(done, decided)} was decided: the interval of {name} assumes a fixed number of subjects and is approximate"
            warnings.append({"kind": "stopped_early", "label": label, "message": message})
        tally, bases = report.judges[label], set(report.judges[label].bases)
        if tally.scored >= ENOUGH and tally.lowest == tally.highest:
            message = f"all {tally.scored:,} scores of {name} are {tally.lowest:.4g}: no two subjects differ"
            warnings.append({"kind": "equal_scores", "label": label, "message": message})
        if "heuristic" in bases and bases <= {"heuristic", "proxy"}:
            message = f"no score of {name} has a basis stronger than heuristics"
            warnings.append({"kind": "only_heuristics", "label": label, "message": message})
    return [*warnings, *_overruns(report)]


def _overruns(report: Report) -> Iterator[Document]:
    """Yield a warning for each component with calls that cost more than their estimate."""
    for label, count in sorted(report.overruns.items()):
        advice = "raise its estimate; if its model reasons, set max_reasoning_tokens"
        message = f"calls of {label} that cost more than projected: {count:,}; {advice}"
        yield {"kind": "overruns", "label": label, "message": message, "calls": count}


def _metrics(report: Report, ending: Ending) -> Document:
    judged = report.judges.get(METRICS, Tally()).kinds
    on = report.started.get("on", {})
    return {
        label: {
            "mean": tally.mean(),
            **tally.weights(),
            **ending.passes(report, label, tally.passes),
            **raw_scale(report, label),
            "basis": tally.basis(),
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
            **tally.weights(),
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
"""Reasons for a stop after which the request itself may be wrong."""


def exit_code(done: Document) -> int:
    """Return the exit code of a finished run: the first that applies of 130, 2, 5, 4, 3, 1, 0."""
    reason = (done["stopped"] or {}).get("reason")
    if done.get("disabled"):
        return 0
    if reason == "interrupted":
        return 130
    if is_refused(done):
        return 2
    throttled = set(done["failures"]) <= {"throttled_no_heuristic"} and (done["failed"] or done["unaffordable"])
    due = {label: tally for label, tally in done["judges"].items() if tally.get("total")}
    if throttled and not (_any_scored(due) if due else _judged(done)):
        return 5  # also if free metrics have scores
    if reason == "ledger_failed" or any(sink["lost"] for sink in done["sinks"].values()):
        return 4
    if done["undecided"]:
        return 3
    return 0 if done["gate"] is None or done["gate"]["passed"] else 1


def is_refused(done: Mapping[str, Any]) -> bool:
    """Return whether an endpoint or a model refused the run before anything was judged: the exit code is 2."""
    document, reason = dict(done), (done.get("stopped") or {}).get("reason")
    return bool((reason in REFUSED and not _began(document)) or (reason == UNSUPPORTED and not _judged(document)))


def exit_note(done: Mapping[str, Any]) -> str:
    """Return the cause of an exit code that the gate's answer does not show, in brackets; empty for other codes."""
    causes = {4: "a sink or the ledger lost data", 5: "the budget allows no judge"}
    code = exit_code(dict(done))
    return f" (exit code {code}: {causes[code]})" if code in causes else ""


def _began(done: Document) -> bool:
    """Return True if anything was judged or spent."""
    spent = [done[sums][unit] for sums in ("cost", "spend_lost") for unit in UNITS if unit in done[sums]]
    return _judged(done) or any(Cost(amount).amount != 0 for amount in spent)


def _judged(done: Document) -> bool:
    """Return True if any label has a score of any subject."""
    return bool(done["scored"]) or _any_scored(done["metrics"]) or _any_scored(done["judges"])


def _any_scored(tallies: Mapping[str, Mapping[str, Any]]) -> bool:
    return any(tally["scored"] for tally in tallies.values())
