"""Taking up a run where an earlier process left it: what the ledger already has is not judged, and not bought, again."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

import orjson

from .. import events
from ..asking.earlier_units import EarlierUnits, ReplyKey, UnitState
from ..classes import evolve, frozen
from ..contract.protocols import Ledger
from ..plan.sections import RECORD
from ..report.fold import Report
from ..values import Entry, Event, Query, Subject
from ..values.errors import ConfigError, Problem

STATES = {
    events.EVAL_STARTED: "open",
    events.EVAL_COMPLETED: "scored",
    events.EVAL_FAILED: "failed",
    events.RECORD_COMPLETED: "scored",
    events.RECORD_FAILED: "failed",
}
LAST = (events.RUN_COMPLETED, events.AGGREGATE_COMPLETED, events.COMPARISON_COMPLETED)
"""What is told at the end of a run, and anew where it is taken up."""

MAY_CHANGE = ("name", "labels", "score_label", "counted", "gated", "pass_at", "pass_rule")
"""What ``run.started`` says that may be another thing when the run is taken up: then it holds as if from the start."""


@frozen
class EarlierRun:
    """A run to take up: its ``run.started`` entry, and whether it had ended."""

    entry: Entry
    finished: bool

    @property
    def run_id(self) -> str:
        """The run's id, which stays the same."""
        return self.entry.event.run_id

    @property
    def payload(self) -> Mapping[str, Any]:
        """What ``run.started`` said."""
        return self.entry.event.payload


def known_outputs(ledger: Ledger, run_id: str) -> set[str]:
    """Where the sinks of earlier processes of the run have written."""
    told: Iterator[Any] = ledger.read(Query(run_id=run_id, types=(events.RUN_STARTED, events.SINKS_ADDED)))
    # Versions of before recorded a trace's own sinks.added as it was; what a trace says is user_controlled.
    own = (entry.event.payload for entry in told if entry.event.sensitivity == "pseudonymous")
    return {place for payload in own for place in payload.get("outputs", ())}


def refuse_changes(earlier: EarlierRun, setup: Mapping[str, str]) -> None:
    """Refuse to mix verdicts of two different pipelines or data sets in one run.

    Runs of before there was a *setup* have the same digests as their ``fingerprints``.

    :raises ConfigError: naming everything that changed.
    """
    before = earlier.payload.get("setup", earlier.payload["fingerprints"])
    how = " (--new)" if earlier.payload.get("live") else ""
    changed = sorted(key for key in {*before, *setup} if before.get(key) != setup.get(key))
    if changed:
        raise ConfigError(
            Problem(f"run {earlier.run_id} cannot be resumed: {key} {what} since; begin a new run{how}", path=key)
            for key in changed
            for what in ["was added" if key not in before else "has changed" if key in setup else "was removed"]
        )


def index(ledger: Ledger, earlier: EarlierRun) -> EarlierUnits:
    """Note every unit of the run: what is finished, what is open, what was paid for. A live run's finished ones are let go."""
    live = earlier.payload.get("live", False)
    spool = EarlierUnits()
    for entry in ledger.read(Query(run_id=earlier.run_id, after=earlier.entry.seq)):
        event = entry.event
        if event.type in STATES:
            unit = (str(event.subject_kind), str(event.subject_id), str(event.payload.get("judge", RECORD)))
            spool.note(unit, str(event.payload.get("eval_id", RECORD)), STATES[event.type], entry.seq)
            if event.type == events.RECORD_FAILED:
                spool.forget_empty(unit[0], unit[1])  # perhaps it failed for them: then they are asked for again
            if live and event.type != events.EVAL_STARTED:
                spool.forget(unit[0], unit[1])
        elif event.type == events.SUBJECT_READ:
            spool.note_read(str(event.subject_kind), str(event.subject_id), entry.seq)
        elif event.type in (events.SPEND_SETTLED, events.TASK_REPLIED) and event.payload.get("reply") is not None:
            spool.note_reply(_reply_key(event), orjson.dumps(_kept(event.payload)))
    return spool


def _kept(payload: Mapping[str, Any]) -> Any:
    """What is kept of a reply: a component's with what it cost in other units than the reply says, which old ledgers do not."""
    return payload["reply"] if "criterion" in payload else [payload["reply"], *payload.get("also", ())]


def _reply_key(event: Event) -> ReplyKey:
    payload: Mapping[str, Any] = event.payload
    label, about = payload.get("judge", RECORD), payload.get("metric")
    if event.type == events.TASK_REPLIED:
        label, about = RECORD, f"{payload['criterion']}:{payload['request_digest']}:{payload['number']}"
    return str(event.subject_kind), str(event.subject_id), str(label), str(about), payload["rollout"]


def replayed(
    ledger: Ledger, run: EarlierRun, spool: EarlierUnits, now: dict[str, Any], *, retry: bool
) -> Iterator[Event]:
    """The run's events as sinks and report are to hear them again, but for the subjects that have :func:`moved`.

    ``run.started`` says what it says *now*.
    """
    for entry in ledger.read(Query(run_id=run.run_id, after=run.entry.seq - 1)):
        event = entry.event
        of_unit = event.type == events.SUBJECT_READ or event.type in STATES
        states = spool.states(str(event.subject_kind), str(event.subject_id)) if of_unit else {}
        if event.type not in LAST and not moved(states, retry=retry):
            yield evolve(event, payload={**event.payload, **now}) if event.type == events.RUN_STARTED else event


def standing(ledger: Ledger, run_id: str, started: Mapping[str, Any]) -> Report:
    """The report of a run whose subjects may have come again: the newest verdict of each judge on each is what counts.

    *started* is what ``run.started`` says now.
    """
    report, spool = Report(), EarlierUnits()
    for entry in ledger.read(Query(run_id=run_id, types=(events.SUBJECT_READ, *events.VERDICT_ENDS))):
        kind, id_ = str(entry.event.subject_kind), str(entry.event.subject_id)
        if entry.event.type in events.VERDICT_ENDS:
            label, eval_id = str(entry.event.payload["judge"]), str(entry.event.payload["eval_id"])
            spool.note((kind, id_, label), eval_id, STATES[entry.event.type], entry.seq)
        else:
            spool.note_read(kind, id_, entry.seq)
    report.observe_all(_standing_events(ledger, run_id, started, spool))
    return report


def _standing_events(ledger: Ledger, run_id: str, started: Mapping[str, Any], spool: EarlierUnits) -> Iterator[Event]:
    """The events of a run without the verdicts, and the readings, that newer ones stand in place of."""
    for entry in ledger.read(Query(run_id=run_id)):
        event = evolve(entry.event, payload=started) if entry.event.type == events.RUN_STARTED else entry.event
        subject = str(event.subject_kind), str(event.subject_id)
        if event.type in events.VERDICT_ENDS and spool.states(*subject)[str(event.payload["judge"])].seq != entry.seq:
            continue
        if event.type != events.SUBJECT_READ or spool.read_at(*subject) == entry.seq:
            yield event


def moved(states: Mapping[str, UnitState], *, retry: bool) -> bool:
    """Whether a subject's events are told together, later: a failure of it was retried, or is about to be."""
    return any(state.late or (retry and state.state == "failed") for state in states.values())


@frozen
class Earlier:
    """An event of an earlier process; one that no longer *stands*, a failure that was retried, is told to sinks alone."""

    event: Event
    stands: bool


def subject_events(ledger: Ledger, spool: EarlierUnits, subject: Subject, done: Container[str]) -> Iterator[Earlier]:
    """What the ledger has of one subject: first that it was read, then its verdicts, those that were retried too.

    Of the labels that are *done* the newest stands.
    """
    states = spool.states(subject.kind, subject.id)
    standing = {state.seq for label, state in states.items() if label in done}
    for seq in [spool.read_at(subject.kind, subject.id), *spool.history(subject.kind, subject.id)]:
        if seq is not None:
            for entry in ledger.read(Query(after=seq - 1, limit=1)):
                is_end = STATES.get(entry.event.type, "open") != "open"
                yield Earlier(entry.event, seq in standing or not is_end)
