"""The end of a run: what its records come to, and what is said of the sinks and the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import attrs

from ..contract.protocols import Ledger, Source
from ..events import AGGREGATE_COMPLETED, COMPARISON_COMPLETED
from ..records.passes import pass_counts
from ..records.reader import results
from ..source.source import SubjectList, read_counts
from ..values import Event, ReadCounts, Results
from ..values.errors import LedgerError

if TYPE_CHECKING:
    from ..plan.sections import Pipeline, Slot
    from ..records.observers import RecordObservers
    from ..report.fold import Report
    from ..stream.stream import Stream

Stopped = dict[str, object] | None
"""Why a run stopped before its end: a ``reason``, and what there is to say about it."""

EARLY_STOP = "early_stop"
"""The reason of a run that has ended because enough was known."""


def conclude(
    observers: RecordObservers | None,
    stream: Stream,
    report: Report,
    ledger: Ledger,
    pipeline: Pipeline,
    baseline: Results | None,
    *,
    whole: bool,
) -> dict[str, Any]:
    """Tell what the run's records come to, and, of a *whole* run, how it compares with *baseline*; return it for the document.

    The *ledger* has all records by now.
    """
    if observers is None:
        return {"aggregates": {}, "comparison": None, "baseline": None, "broken": {}}
    found: dict[str, Any] = {"aggregates": dict(_emitted(stream, AGGREGATE_COMPLETED, _whole(observers, report), {}))}
    wanted, said, comparison = pipeline.baseline, dict[str, object](), None
    if wanted is not None:
        said = {"run": wanted.run, "run_id": None, "name": None}
    if wanted is not None and baseline is not None:
        recorded = results(ledger, stream.run_id)
        own = attrs.evolve(recorded, models=report.models, adapted=report.adapted)
        said |= {"run_id": baseline.run_id, "name": baseline.name, "differs": own.differs(baseline)}
        if whole:
            said["passes"] = {label: counts.json() for label, counts in pass_counts(baseline, own).items()}
            compared = observers.compare(wanted.compare, baseline, own)
            comparison = dict(_emitted(stream, COMPARISON_COMPLETED, compared, {"baseline": baseline.run_id}))
    return found | {"comparison": comparison, "baseline": said or None, "broken": dict(observers.broken)}


def _whole(observers: RecordObservers, report: Report) -> Iterable[tuple[Slot, Any]]:
    """What each aggregate comes to, with the rows that have no record, where records are made; an aggregate's own stay."""
    started, failures = report.started, report.rows.failures
    makes = started.get("task") is not None or bool(started.get("extractors"))
    for slot, result in observers.finish():
        yield slot, {**result, "failures": result.get("failures", failures)} if makes and result is not None else result


def _emitted(
    stream: Stream, type_: str, found: Iterable[tuple[Slot, Any]], more: Mapping[str, object]
) -> Iterable[tuple[str, Any]]:
    for slot, result in found:
        event: Event = stream.event(type_, {"label": slot.label, "name": slot.name, **more, "result": result})
        stream.emit([event])
        yield slot.label, result


def stopped_after(stopped: Stopped, append: Callable[[], object]) -> Stopped:
    """Let *append* write to the ledger unless it has failed already; return why the run stopped, which may be this."""
    if stopped is None or stopped["reason"] != "ledger_failed":
        try:
            append()
        except LedgerError as error:
            return failed(stopped, error)
    return stopped


def failed(stopped: Stopped, error: LedgerError) -> dict[str, object]:
    """Say that the ledger has failed; the reason why the run stopped before that stands."""
    return {"reason": "ledger_failed", "error": str(error)} | (stopped or {})


def counted(source: Source | None, name: str, report: Report) -> tuple[ReadCounts | None, dict[str, str]]:
    """Return the counts of the records read, None if the source does not count, and the fault of a source that cannot count, by its place."""
    if source is None:
        return None, {}
    if isinstance(source, SubjectList):
        return ReadCounts(report.subjects, failed=report.failed_records), {}
    counts = read_counts(source, name)
    return (None, {"source": counts}) if isinstance(counts, str) else (counts, {})


def sinks_json(stream: Stream, *, ahead: int) -> dict[str, dict[str, object]]:
    """What became of the sinks' events; *ahead* counts those that the sinks still open are about to write."""
    return {feed.label: feed.status(ahead) for feed in stream.feeds}


def reserved_json(ledger: Ledger, run_id: str, stopped: Stopped) -> dict[str, Any]:
    """Return the sums that stay reserved for the batches of a run, by unit, for its document; nothing where the ledger cannot say."""
    if stopped is not None and stopped["reason"] == "ledger_failed":
        return {}
    sums: dict[str, Decimal] = {}
    for entry in ledger.reservations(run_id):
        held: Mapping[str, Any] = entry.event.payload
        if held.get("outlives_run"):
            sums[held["unit"]] = sums.get(held["unit"], Decimal(0)) + Decimal(held["amount"])
    return {"reserved": {unit: f"{total:f}" for unit, total in sums.items()}} if sums else {}


def ledger_json(ledger: Ledger) -> dict[str, object]:
    """Where the ledger is, and its newest row."""
    head = ledger.head()
    path = getattr(ledger, "path", None)
    return {
        "path": None if path is None else str(path),
        "head": None if head is None else {"seq": head.seq, "digest": head.digest},
    }
