"""Resuming a run after an earlier process: results in the ledger are neither judged nor paid for again."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import orjson

from .. import events
from ..classes import evolve, frozen
from ..contract.protocols import Ledger
from ..plan.sections import RECORD
from ..report.current import CurrentReport
from ..report.fold import Report
from ..values import Entry, Event, Query, Subject
from ..values.errors import ConfigError, Problem

if TYPE_CHECKING:
    from ..asking.earlier_units import EarlierUnits, ReplyKey, UnitState

STATES = {
    events.EVAL_STARTED: "open",
    events.EVAL_COMPLETED: "scored",
    events.EVAL_FAILED: "failed",
    events.RECORD_COMPLETED: "scored",
    events.RECORD_FAILED: "failed",
}
LAST = (events.RUN_COMPLETED, events.AGGREGATE_COMPLETED, events.COMPARISON_COMPLETED)
"""Events at the end of a run, which are recorded again if the run is resumed."""

_PAID = (events.SPEND_SETTLED, events.TASK_REPLIED)
"""Events that may have a paid reply."""

MAY_CHANGE = ("name", "labels", "score_label", "counted", "gated", "pass_at", "pass_rule")
"""Members of ``run.started`` that may change when the run is resumed; the new values apply from the start."""


Options = Mapping[str, Mapping[str, Mapping[str, str]]]
"""Recorded options: by section, by whether they can change a score, and by path."""


@frozen
class EarlierRun:
    """A run to resume: its ``run.started`` entry, and flags if it had ended, and if it ended with failures."""

    entry: Entry
    finished: bool
    has_failures: bool = False

    @property
    def run_id(self) -> str:
        """The id of the run, which stays the same."""
        return self.entry.event.run_id

    @property
    def payload(self) -> Mapping[str, Any]:
        """The payload of ``run.started``."""
        return self.entry.event.payload


def known_outputs(ledger: Ledger, run_id: str) -> set[str]:
    """Return the places that sinks of earlier processes of the run have written to."""
    entries: Iterator[Any] = ledger.read(Query(run_id=run_id, types=(events.RUN_STARTED, events.SINKS_ADDED)))
    # Older versions recorded a trace's own sinks.added event unchanged; such events are user_controlled.
    payloads = (entry.event.payload for entry in entries if entry.event.sensitivity == "pseudonymous")
    return {place for payload in payloads for place in payload.get("outputs", ())}


def refuse_changes(
    earlier: EarlierRun,
    setup: Mapping[str, str],
    name_changes: Callable[[str, Options], str] | None = None,
    may_change: Callable[[str, Mapping[str, Any]], bool] | None = None,
) -> None:
    """Refuse to mix verdicts of two different pipelines or data sets in one run.

    Runs of versions without *setup* have the same digests in their ``fingerprints``.

    :param name_changes: returns the options of a section that differ from the recorded options, with both values, or an empty text.
    :param may_change: returns whether the change of a section, from the run with the payload of ``run.started``, changes no verdict and no cost.
    :raises ConfigError: naming everything that changed; for options also the values.
    """
    recorded = earlier.payload.get("setup", earlier.payload["fingerprints"])
    option = " (--new)" if earlier.payload.get("live") else ""
    changed = sorted(key for key in {*recorded, *setup} if recorded.get(key) != setup.get(key))
    if may_change is not None:
        changed = [key for key in changed if not may_change(key, earlier.payload)]
    if changed:
        options: Options = earlier.payload.get("options", {})
        raise ConfigError(
            Problem(f"run {earlier.run_id} cannot be resumed: {key} {change} since; start a new run{option}", path=key)
            for key in changed
            for change in [
                "was added"
                if key not in recorded
                else f"has changed{name_changes(key, options) if name_changes else ''}"
                if key in setup
                else "was removed"
            ]
        )


def index(ledger: Ledger, earlier: EarlierRun) -> EarlierUnits:
    """Index every unit of the run: finished, open, or paid for. Finished units of a live run are dropped."""
    from ..asking.earlier_units import EarlierUnits  # a new run has no earlier units

    live = earlier.payload.get("live", False)
    spool = EarlierUnits()
    for entry in ledger.read(Query(run_id=earlier.run_id, after=earlier.entry.seq)):
        event = entry.event
        if event.type in STATES:
            unit = (str(event.subject_kind), str(event.subject_id), str(event.payload.get("judge", RECORD)))
            spool.note(unit, str(event.payload.get("eval_id", RECORD)), STATES[event.type], entry.seq)
            if event.type == events.RECORD_FAILED:
                spool.forget_empty(*unit)  # empty replies may be the cause of the failure; they are requested again
            if live and event.type != events.EVAL_STARTED:
                spool.forget(unit[0], unit[1])
        elif event.type == events.SUBJECT_READ:
            spool.note_read(str(event.subject_kind), str(event.subject_id), entry.seq)
        else:
            _note_reply(spool, event)
    return spool


def index_replies(ledger: Ledger, run_id: str, spool: EarlierUnits) -> None:
    """Add the paid replies of the run to *spool*."""
    for entry in ledger.read(Query(run_id, _PAID)):
        _note_reply(spool, entry.event)


def _note_reply(spool: EarlierUnits, event: Event) -> None:
    if event.type in _PAID and event.payload.get("reply") is not None:
        spool.note_reply(_reply_key(event), orjson.dumps(_stored_reply(event.payload)))


def _stored_reply(payload: Mapping[str, Any]) -> Any:
    """Return the stored part of a reply. A component's reply includes its cost in other units, which replies in old ledgers lack."""
    return payload["reply"] if "criterion" in payload else [payload["reply"], *payload.get("also", ())]


def _reply_key(event: Event) -> ReplyKey:
    payload: Mapping[str, Any] = event.payload
    label, subject_part = payload.get("judge", RECORD), payload.get("metric")
    if event.type == events.TASK_REPLIED:
        label, subject_part = RECORD, f"{payload['criterion']}:{payload['request_digest']}:{payload['number']}"
    return str(event.subject_kind), str(event.subject_id), str(label), str(subject_part), payload["rollout"]


def replayed(
    ledger: Ledger, run: EarlierRun, spool: EarlierUnits, current_members: dict[str, Any], *, retry: bool
) -> Iterator[Event]:
    """Yield the recorded events of the run for sinks and report, except the events of subjects that have :func:`moved`.

    A call that a cap forbade is left out if its failure is retried now, or if every label of its subject has a newer score.

    The payload of ``run.started`` gets the *current_members*.
    """
    for entry in ledger.read(Query(run_id=run.run_id, after=run.entry.seq - 1)):
        event = entry.event
        is_call = event.type == events.BUDGET_THROTTLED
        has_unit = is_call or event.type == events.SUBJECT_READ or event.type in STATES
        states = spool.states(str(event.subject_kind), str(event.subject_id)) if has_unit else {}
        is_past = not is_call or retry or all(state.state == "scored" for state in states.values())
        if event.type not in LAST and not (is_past and moved(states, retry=retry)):
            yield (
                evolve(event, payload={**event.payload, **current_members})
                if event.type == events.RUN_STARTED
                else event
            )


def forbidden_calls(ledger: Ledger, run_id: str, subject: Subject) -> list[Event]:
    """Return the events of the calls that a cap forbade since the last start of a judgment of *subject*."""
    calls: list[Event] = []
    types = (events.EVAL_STARTED, events.BUDGET_THROTTLED)
    for entry in ledger.read(Query(run_id, types, subject.kind, subject.id)):
        calls = [] if entry.event.type == events.EVAL_STARTED else [*calls, entry.event]
    return calls


def new_report(ledger: Ledger, *, live: bool) -> Report:
    """Return a report for a run on *ledger*; for a *live* run, with the newest verdicts alone once it is settled."""
    return CurrentReport(ledger.read) if live else Report()


def settled_report(report: Report, ledger: Ledger) -> Report:
    """Return the report at the end of its run, in which the newest verdict of each judge on each subject counts."""
    if not isinstance(report, CurrentReport) or report.settle():
        return report
    return current_report(ledger, report.run_id, report.started)


def current_report(ledger: Ledger, run_id: str, started: Mapping[str, Any]) -> Report:
    """Return the report of a run that may have judged subjects more than once: the newest verdict of each judge on each subject counts.

    *started* is the current payload of ``run.started``.
    """
    from ..asking.earlier_units import EarlierUnits  # as in index

    report, spool = Report(), EarlierUnits()
    for entry in ledger.read(Query(run_id=run_id, types=(events.SUBJECT_READ, *events.VERDICT_ENDS))):
        kind, id_ = str(entry.event.subject_kind), str(entry.event.subject_id)
        if entry.event.type in events.VERDICT_ENDS:
            label, eval_id = str(entry.event.payload["judge"]), str(entry.event.payload["eval_id"])
            spool.note((kind, id_, label), eval_id, STATES[entry.event.type], entry.seq)
        else:
            spool.note_read(kind, id_, entry.seq)
    report.observe_all(_current_events(ledger, run_id, started, spool))
    return report


def _current_events(ledger: Ledger, run_id: str, started: Mapping[str, Any], spool: EarlierUnits) -> Iterator[Event]:
    """Yield the events of a run, except verdicts and ``subject.read`` events that newer events replaced."""
    for entry in ledger.read(Query(run_id=run_id)):
        event = evolve(entry.event, payload=started) if entry.event.type == events.RUN_STARTED else entry.event
        subject = str(event.subject_kind), str(event.subject_id)
        if event.type in events.VERDICT_ENDS and spool.states(*subject)[str(event.payload["judge"])].seq != entry.seq:
            continue
        if event.type != events.SUBJECT_READ or spool.read_at(*subject) == entry.seq:
            yield event


def moved(states: Mapping[str, UnitState], *, retry: bool) -> bool:
    """Return True if a subject's earlier events are replayed when this process reaches the subject, because a failure of it was or will be retried."""
    return any(state.late or (retry and state.state == "failed") for state in states.values())


@frozen
class EarlierEvent:
    """An event of an earlier process. If *is_current* is False, as for a retried failure, only sinks receive it."""

    event: Event
    is_current: bool


def subject_events(
    ledger: Ledger, spool: EarlierUnits, subject: Subject, done: Container[str]
) -> Iterator[EarlierEvent]:
    """Yield the ledger's events of one subject: its reading, then its verdicts, including retried ones.

    For the labels in *done* only the newest event is current.
    """
    states = spool.states(subject.kind, subject.id)
    current = {state.seq for label, state in states.items() if label in done}
    for seq in [spool.read_at(subject.kind, subject.id), *spool.history(subject.kind, subject.id)]:
        if seq is not None:
            for entry in ledger.read(Query(after=seq - 1, limit=1)):
                is_end = STATES.get(entry.event.type, "open") != "open"
                yield EarlierEvent(entry.event, seq in current or not is_end)
