"""End of a run: the results of its records, and the status of its sinks and its ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import attrs

from ..contract.protocols import Ledger, Source
from ..events import AGGREGATE_COMPLETED, COMPARISON_COMPLETED
from ..leases.hold_lease import raise_if_lease_lost
from ..pipeline.default_ledger import is_in_environment
from ..pipeline.ledger_path import printed_place
from ..pipeline.slots import ledger_slot
from ..plan.clauses import ComparedRuns
from ..report.caps import reached_caps
from ..report.document import document
from ..source.source import SubjectList, read_counts
from ..values import Event, ReadCounts, Results
from ..values.errors import LedgerError

if TYPE_CHECKING:
    from ..plan.secret_mask import SecretMask
    from ..plan.sections import Pipeline, Slot
    from ..records.observers import RecordObservers
    from ..report.fold import Report
    from ..resume.open_runs import RunCommand
    from ..resume.shard_roots import ShardRoot
    from ..stream.opening import ComponentStack
    from ..stream.sinks import SinkFeed
    from ..stream.stream import Stream

Stopped = dict[str, object] | None
"""Reason why a run stopped before its end: a ``reason``, with details."""

EARLY_STOP = "early_stop"
"""Reason of a run that ended because its result was decided."""


def conclude(
    observers: RecordObservers | None,
    stream: Stream,
    report: Report,
    ledger: Ledger,
    pipeline: Pipeline,
    baseline: Results | None,
    mask: SecretMask,
    *,
    is_complete: bool,
) -> dict[str, Any]:
    """Emit the aggregates of the run's records and, if the run *is_complete*, the comparison with *baseline*; return both for the document.

    The *ledger* has all records by now. *mask* removes the secrets from both.
    """
    if observers is None:
        return {"aggregates": {}, "comparison": None, "baseline": None, "broken": {}}
    result: dict[str, Any] = {
        "aggregates": dict(_emit_results(stream, AGGREGATE_COMPLETED, _with_failures(observers, report), {}, mask.data))
    }
    section, summary, comparison = pipeline.baseline, dict[str, object](), None
    if section is not None:
        summary = {"run": section.run, "run_id": None, "name": None}
    if section is not None and baseline is not None:
        from ..records.comparable import find_faults  # few runs have a baseline
        from ..records.passes import pass_counts
        from ..records.reader import results

        recorded = results(ledger, stream.run_id)
        current = attrs.evolve(recorded, models=report.models, adapted=report.adapted)
        differs, faults = current.differs(baseline), find_faults(baseline, current)
        summary |= {"run_id": baseline.run_id, "name": baseline.name, "differs": differs, "faults": faults}
        if is_complete:
            summary["passes"] = {label: counts.json() for label, counts in pass_counts(baseline, current).items()}
            compared = observers.compare(section.compare, baseline, current)
            members = {"baseline": baseline.run_id}
            comparison = dict(_emit_results(stream, COMPARISON_COMPLETED, compared, members, mask.document))
    return result | {"comparison": comparison, "baseline": summary or None, "broken": dict(observers.broken)}


def gated_document(
    ledger: Ledger,
    pipeline: Pipeline,
    report: Report,
    baselines: Mapping[str, Results | None],
    stopped: Mapping[str, Any] | None,
    intervals: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    counts: ReadCounts | None = None,
    command: RunCommand | None = None,
) -> dict[str, Any]:
    """Return the document of the run of *report*, as :func:`document` does, decided by the gate of *pipeline*.

    A clause that names a baseline gets the run and its *baselines* from the *ledger*, unless the ledger has failed.
    *command* is the command of this run, which a reason may repeat to judge failures again; by default the recorded one.
    """
    compared, reason = ComparedRuns(), None if stopped is None else str(stopped["reason"])
    if reason != "ledger_failed" and any(pipeline.gate.baselines()):
        from ..records.reader import in_ledger, results  # few gates have a baseline

        place = _printed_place(ledger, ledger_slot(pipeline))
        recorded = in_ledger(results(ledger, report.run_id), ledger, place)
        current = attrs.evolve(recorded, models=report.models, adapted=report.adapted, stopped=reason)
        if command is not None and recorded.retry_command is not None:
            failures = {**report.failures.figures(), "unaffordable": report.unaffordable}
            retry = command.raising(reached_caps({**failures, **report.throttled.figures()}))
            current = attrs.evolve(current, retry_command=retry.retrying(report.run_id))
        baselines = {name: run and in_ledger(run, ledger, place) for name, run in baselines.items()}
        compared = ComparedRuns(current, baselines)
    aggregation, gate = pipeline.scoring.aggregation, pipeline.gate
    return document(report, aggregation, gate, stopped=stopped, intervals=intervals, counts=counts, compared=compared)


def _with_failures(observers: RecordObservers, report: Report) -> Iterable[tuple[Slot, Any]]:
    """Yield the result of each aggregate. If the run makes records, add the rows without a record, unless the aggregate lists its own failures."""
    started, failures = report.started, report.rows.failures
    makes = started.get("task") is not None or bool(started.get("extractors"))
    for slot, result in observers.finish():
        yield slot, {**result, "failures": result.get("failures", failures)} if makes and result is not None else result


def _emit_results(
    stream: Stream,
    type_: str,
    results_: Iterable[tuple[Slot, Any]],
    members: Mapping[str, object],
    mask: Callable[[Any], Any],
) -> Iterable[tuple[str, Any]]:
    for slot, unmasked in results_:
        result = mask(unmasked)
        event: Event = stream.event(type_, {"label": slot.label, "name": slot.name, **members, "result": result})
        stream.emit([event])
        yield slot.label, result


def stopped_after(stopped: Stopped, append: Callable[[], object]) -> Stopped:
    """Call *append* to write to the ledger unless it has failed; return why the run stopped, which may be a failure of this call."""
    if stopped is None or stopped["reason"] != "ledger_failed":
        try:
            append()
        except LedgerError as error:
            return failed(stopped, error)
    return stopped


def failed(stopped: Stopped, error: LedgerError) -> dict[str, object]:
    """Return the stop for a failed ledger; an earlier reason for the stop takes precedence."""
    return {"reason": "ledger_failed", "error": str(error)} | (stopped or {})


def counted(source: Source | None, name: str, report: Report) -> tuple[ReadCounts | None, dict[str, str]]:
    """Return the counts of the records read, and the fault of a source that cannot count, by its place.

    The counts are None if the source does not count.
    """
    if source is None:
        return None, {}
    if isinstance(source, SubjectList):
        return ReadCounts(report.subjects, failed=report.failed_records), {}
    counts = read_counts(source, name)
    return (None, {"source": counts}) if isinstance(counts, str) else (counts, {})


async def close_sinks(stream: Stream, ledger: Ledger, which: Callable[[SinkFeed], bool] | None = None) -> None:
    """Close the open sinks, or only the sinks that *which* accepts.

    :raises LedgerError: when another process has taken over the run: the sinks' files belong to that process.
    """
    raise_if_lease_lost(ledger, stream.run_id)
    await stream.close_sinks(which)


async def finish_sinks(
    stream: Stream, ledger: Ledger, parts: ComponentStack, sinks: Sequence[Slot]
) -> dict[str, dict[str, object]]:
    """Close the open sinks and their components; return the status of each sink.

    A fault of a component counts as one lost event, if its sink lost none before.

    :raises LedgerError: as :func:`close_sinks`.
    """
    await close_sinks(stream, ledger)
    for slot, feed in zip(sinks, stream.feeds, strict=True):
        if (fault := await parts.close_part(slot.path)) and not feed.lost:
            feed.lost, feed.error = 1, fault
    return sinks_json(stream, ahead=0)


def sinks_json(stream: Stream, *, ahead: int) -> dict[str, dict[str, object]]:
    """Return the status of each sink; *ahead* is the number of events that open sinks are about to write."""
    return {feed.label: feed.status(ahead) for feed in stream.feeds}


def reserved_json(ledger: Ledger, run_id: str, stopped: Stopped) -> dict[str, Any]:
    """Return the sums that stay reserved for the batches of a run, by unit, for its document; empty after a failure of the ledger."""
    if stopped is not None and stopped["reason"] == "ledger_failed":
        return {}
    sums: dict[str, Decimal] = {}
    for entry in ledger.reservations(run_id):
        reservation: Mapping[str, Any] = entry.event.payload
        if reservation.get("outlives_run"):
            sums[reservation["unit"]] = sums.get(reservation["unit"], Decimal(0)) + Decimal(reservation["amount"])
    return {"reserved": {unit: f"{total:f}" for unit, total in sums.items()}} if sums else {}


def ledger_json(ledger: Ledger, slot: Slot | None = None, root: ShardRoot | None = None) -> dict[str, object]:
    """Return the path of the ledger, and its newest row; for a ledger of *slot* without a path also the value of ``--ledger`` as ``place``.

    For a run in shards, *root* is added.

    The place is left out if the other commands take the same ledger from ``$DICAST_LEDGER``.
    """
    head = ledger.head()
    path, place = getattr(ledger, "path", None), _printed_place(ledger, slot)
    return {
        "path": None if path is None else str(path),
        "head": None if head is None else {"seq": head.seq, "digest": head.digest},
        **({} if root is None else {"root": root.root}),
        **({} if place is None else {"place": place}),
    }


def _printed_place(ledger: Ledger, slot: Slot | None) -> str | None:
    """Return the value of ``--ledger`` for the *ledger* of *slot*; None if it has a path, or is the ledger in ``$DICAST_LEDGER``."""
    if getattr(ledger, "path", None) is not None or slot is None or is_in_environment(slot.component):
        return None
    return printed_place(slot.name, slot.component)
