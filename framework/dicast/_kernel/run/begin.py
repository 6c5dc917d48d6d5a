"""Start of a subject: its first events, the eval_ids of its verdicts, and the child verdicts for its judges."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..asking.paid_calls import NOT_CALLED, DirectAnswers
from ..asking.unit import Unit
from ..classes import define, evolve, field
from ..contract.protocols import Ledger
from ..events import EVAL_STARTED, SUBJECT_READ
from ..plan.sections import RECORD
from ..resume.resume import EarlierEvent, moved, subject_events
from ..source.source import SeenEvents
from ..stream.content import content, trace_events
from ..stream.stream import Stream
from ..values import Due, Event, Failure, Subject, Verdict
from ..values.errors import DataError
from .children import ChildVerdicts, Family, RecordedChildren, children_of
from .plan import Plan

if TYPE_CHECKING:
    from ..asking.earlier_units import EarlierUnits, UnitState
    from ..asking.recorded_unit import RecordedUnit


@define(eq=False)
class Job:
    """One subject in progress, with the units that judge it and their eval_ids.

    *earlier* has the events of an earlier process, which are emitted together with the new *events*. *children* are the verdicts on the
    subject's parts. *family* is the family that the subject belongs to, and *parent* the eval_id of the verdict on its parent. *record*
    is True if the subject's record is to be emitted. *ready* has the answers of metrics that were called already.
    """

    due: Due
    units: Sequence[tuple[Unit | RecordedUnit, str]]
    events: list[Event] = field(factory=list)
    earlier: Sequence[EarlierEvent] = ()
    children: Sequence[Verdict] = ()
    family: Family | None = None
    parent: str | None = None
    record: bool = False
    ready: DirectAnswers = NOT_CALLED
    task: asyncio.Task[None] | None = None


class RowStart(NamedTuple):  # faster than a frozen attrs class, for every row
    """Start of a row whose metrics are called before its first events are made.

    :param read: the payload of ``subject.read``.
    :param eval_id: the id of the verdict.
    :param ids: the ids of the first two events.
    :param time: the time of both events.
    :param text: the JSON text of the content, as :func:`.content_and_text` returns it.
    """

    read: dict[str, Any]
    eval_id: str
    ids: tuple[str, str]
    time: str
    text: bytes | None


class Starter:
    """Starter of the subjects of one run.

    *spool* has the units of an earlier process of the run. With *live* a subject may be judged more than once. *recorded* has the verdicts
    for subjects whose events are in the ledger.
    """

    def __init__(
        self,
        plan: Plan,
        spool: EarlierUnits | None,
        stream: Stream,
        ledger: Ledger,
        families: ChildVerdicts,
        *,
        retry: bool,
        live: bool,
        records: bool,
    ) -> None:
        self._records = records
        self._plan, self._spool, self._stream, self._ledger, self._families = plan, spool, stream, ledger, families
        self._retry, self._live = retry, live
        is_new = live and spool is None
        self.recorded = RecordedChildren(ledger, stream.run_id if live else None, stream.commit, is_new=is_new)
        self._seen = SeenEvents()
        self._units: dict[str, tuple[Unit, ...]] = {}

    async def start(self, due: Due, row_start: RowStart | None = None) -> Job:
        """Emit ``subject.read`` and ``eval.started`` events, except for events that an earlier process recorded; return the subject as a job.

        :param row_start: the start of a row that one unit judges, if its metrics were called already.
        """
        subject = due.subject
        units = self._units.get(subject.kind) if due.failure is None else self._plan.units_losing(subject.kind)
        if units is None:
            units = self._units[subject.kind] = self._plan.units_for(subject.kind)
        family = self._families.take(subject) if self._families.pending else None
        recorded: Sequence[RecordedUnit] = ()
        if due.recorded:
            from ..asking.recorded_unit import recorded_units  # few sources have scores of other tools

            recorded = recorded_units(due.recorded, keeps_content=self._plan.keeps_content)
        if self._live:
            job = self._start_live(due, units, recorded, family)
        elif self._spool is not None:
            job = await self._start_again(due, units, recorded, self._spool, family)
        else:
            planned_ids = {} if row_start is None else {units[0].label: row_start.eval_id}
            job = Job(due, self._units_with_ids(units, recorded, family, planned_ids), record=self._records)
            self._join(job)
            self._emit(job, read=True, started=(), row_start=row_start)
        if due.from_run is not None:
            job.children = self.recorded.children(subject)
        elif family is not None:
            job.children = family.children
        return job

    def _eval_id(self, family: Family | None) -> str:
        """Return the eval_id that the children's verdicts refer to, if it is unused; else a new id."""
        if family is None or not family.eval_id:
            return self._stream.clock.id()
        eval_id, family.eval_id = family.eval_id, ""
        return eval_id

    def _units_with_ids(
        self,
        units: Iterable[Unit],
        recorded: Iterable[RecordedUnit],
        family: Family | None,
        open_ids: Mapping[str, str],
    ) -> list[tuple[Unit | RecordedUnit, str]]:
        """Return each unit with its eval_id; children refer to no verdict of another tool."""
        judged = [(unit, open_ids.get(unit.label) or self._eval_id(family)) for unit in units]
        return [*judged, *((unit, open_ids.get(unit.label) or self._stream.clock.id()) for unit in recorded)]

    def _join(self, job: Job) -> None:
        """Find the subject's family and its parent's verdict; a subject of an earlier run is looked up in the ledger."""
        due, subject = job.due, job.due.subject
        if due.from_run is None:
            job.family = None if subject.parent_id is None else self._families.of_child(subject)
        elif self._families.tracks(subject):
            job.family = self._families.of_child(subject, lambda: self.recorded.named(subject))
        else:
            job.parent = self.recorded.parent(subject) or self.recorded.named(subject)
        if job.family is not None:
            job.parent = job.family.eval_id

    def _start_live(
        self, due: Due, units: Iterable[Unit], recorded: Iterable[RecordedUnit], family: Family | None
    ) -> Job:
        """Start a subject that may have been judged before. Evaluations that a killed process left open are continued."""
        states = {} if self._spool is None else self._spool.states(due.subject.kind, due.subject.id)
        open_ids = {label: state.eval_id for label, state in states.items() if state.state == "open"}
        job = Job(due, self._units_with_ids(units, recorded, family, open_ids), record=self._records)
        self._join(job)
        self._emit(job, read=not open_ids, started=open_ids)
        return job

    async def _start_again(
        self,
        due: Due,
        units: Iterable[Unit],
        recorded: Iterable[RecordedUnit],
        spool: EarlierUnits,
        family: Family | None,
    ) -> Job:
        subject = due.subject
        states: Mapping[str, UnitState] = spool.states(subject.kind, subject.id)
        open_ids = {label: state.eval_id for label, state in states.items() if state.state == "open"}
        undone = ("open", "failed") if self._retry else ("open",)
        done = {label for label, state in states.items() if state.state not in undone}
        undone_units = [unit for unit in units if unit.label not in done]
        undone_recorded = [unit for unit in recorded if unit.label not in done]
        planned = self._units_with_ids(undone_units, undone_recorded, family, open_ids)
        job = Job(due, planned, record=self._records and RECORD not in done)
        self._rejoin(job, spool, done)
        if moved(states, retry=self._retry):
            read, *job.earlier = subject_events(self._ledger, spool, subject, done)
            await self._stream.flush()
            await self._stream.replay([read.event])
        read_before = spool.read_at(subject.kind, subject.id) is not None
        if read_before:
            self._seen.new(due.subject)  # the earlier process recorded these events
        self._emit(job, read=not read_before, started=open_ids)
        return job

    def _rejoin(self, job: Job, spool: EarlierUnits, done: Container[str]) -> None:
        """Add the subject's verdicts of an earlier process to its family, under the parent's eval_id that they refer to."""
        subject = job.due.subject
        if not self._families.tracks(subject):
            return
        earlier = subject_events(self._ledger, spool, subject, done)
        verdicts = children_of([event.event for event in earlier if event.is_current])
        parent_id = next((verdict.parent_eval_id for verdict in verdicts if verdict.parent_eval_id), None)
        job.family = self._families.of_child(subject, lambda: parent_id)
        if job.family is not None:
            job.parent = job.family.eval_id
            job.family.children += verdicts

    def _emit(self, job: Job, *, read: bool, started: Collection[str], row_start: RowStart | None = None) -> None:
        due, subject, stream = job.due, job.due.subject, self._stream
        events = []
        stamps = iter(()) if row_start is None else iter([(id_, row_start.time) for id_ in row_start.ids])
        if read:
            try:
                content_payload = content(due, stream.run_id) if row_start is None else row_start.read
            except DataError as error:
                if not self._live:
                    raise
                due = job.due = _unrecordable(due, error)  # the run continues with other subjects
                subject, content_payload = due.subject, content(due, stream.run_id)
            has_trace = due.from_run is None and (subject.events or subject.trail.stop)
            traces = self._seen.new(subject) if has_trace else []
            if subject.events and due.from_run is None:
                content_payload["events"] = self._seen.places(subject)
            if subject.trail.stop and due.from_run is None:
                content_payload["trail"] = subject.trail.stop
            events.append(stream.event(SUBJECT_READ, content_payload, subject, "user_controlled", next(stamps, None)))
            if traces:
                events += trace_events(stream, traces)
        for unit, eval_id in job.units:
            if unit.label not in started:
                plan = {
                    "eval_id": eval_id,
                    "subject_kind": subject.kind,
                    "subject_id": subject.id,
                    "judge": unit.label,
                    "trigger": due.trigger,
                    **unit.planned(subject.kind),
                }
                events.append(stream.event(EVAL_STARTED, plan, subject, stamp=next(stamps, None)))
        stream.emit(events)


def _unrecordable(due: Due, error: DataError) -> Due:
    """Return *due* as a failed record: its subject has the identity alone, since the content is not JSON."""
    subject = due.subject
    bare = Subject(subject.kind, subject.id, session_id=subject.session_id, parent_id=subject.parent_id)
    return evolve(due, subject=bare, failure=Failure("source_error", str(error)))
