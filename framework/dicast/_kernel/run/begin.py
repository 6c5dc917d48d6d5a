"""Beginning a subject: its first events, the eval_ids under which it is judged, and what its judges are given."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Container, Iterable, Mapping, Sequence

from ..asking.earlier_units import EarlierUnits, UnitState
from ..asking.unit import Unit
from ..classes import define, evolve, field
from ..contract.protocols import Ledger
from ..events import EVAL_STARTED, SUBJECT_READ
from ..plan.sections import RECORD
from ..resume.resume import Earlier, moved, subject_events
from ..source.source import SeenEvents
from ..stream.content import content, trace_events
from ..stream.stream import Stream
from ..values import Due, Event, Failure, Subject, Verdict
from ..values.errors import DataError
from .children import ChildVerdicts, Family, RecordedChildren, children_of
from .plan import Plan


@define(eq=False)
class Job:
    """One subject under way, with the units that judge it under their eval_ids.

    *kept* is what an earlier process left of it, to be emitted together with this one's *events*; *children* are the verdicts
    on what it is made of, *family* is what it is itself a part of, and *parent* the eval_id of that one's verdict; *record*
    says that its record is to be emitted.
    """

    due: Due
    units: Sequence[tuple[Unit, str]]
    events: list[Event] = field(factory=list)
    kept: Sequence[Earlier] = ()
    children: Sequence[Verdict] = ()
    family: Family | None = None
    parent: str | None = None
    record: bool = False
    task: asyncio.Task[None] | None = None


class Starter:
    """Begins the subjects of one run. *spool* is what an earlier process of it left; *live* ones may come again."""

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
        self._recorded = RecordedChildren(ledger, stream.run_id if live else None)
        self._seen = SeenEvents()
        self._units: dict[str, tuple[Unit, ...]] = {}

    async def start(self, due: Due) -> Job:
        """Emit that the subject was read and which verdicts are begun, but for what an earlier process has recorded."""
        subject = due.subject
        units = self._units.get(subject.kind) if due.failure is None else self._plan.units_losing(subject.kind)
        if units is None:
            units = self._units[subject.kind] = self._plan.units_for(subject.kind)
        own = self._families.take(subject) if self._families.begun else None
        if self._live:
            job = self._start_live(due, units, own)
        elif self._spool is not None:
            job = await self._start_again(due, units, self._spool, own)
        else:
            job = Job(due, [(unit, self._eval_id(own)) for unit in units], record=self._records)
            self._join(job)
            self._emit(job, read=True, begun=())
        if due.from_run is not None:
            if own is not None:  # some of them were judged by this run
                self._stream.commit()
            job.children = self._recorded.children(subject)
        elif own is not None:
            job.children = own.children
        return job

    def _eval_id(self, family: Family | None) -> str:
        """The id that the children's verdicts have named already, once; else a new one."""
        if family is None or not family.eval_id:
            return self._stream.clock.id()
        eval_id, family.eval_id = family.eval_id, ""
        return eval_id

    def _join(self, job: Job) -> None:
        """Find what the subject is a part of; of one that the ledger has already, the ledger knows it."""
        due, subject = job.due, job.due.subject
        if due.from_run is None:
            job.family = None if subject.parent_id is None else self._families.of_child(subject)
        elif self._families.tracks(subject):
            job.family = self._families.of_child(subject, lambda: self._named(subject))
        else:
            job.parent = self._recorded.parent(subject) or self._recorded.named(subject)
        if job.family is not None:
            job.parent = job.family.eval_id

    def _named(self, subject: Subject) -> str | None:
        self._stream.commit()  # the verdict that would have borne the name may just have been emitted
        return self._recorded.named(subject)

    def _start_live(self, due: Due, units: Iterable[Unit], own: Family | None) -> Job:
        """Begin a subject that may have been judged before; what a killed process had begun is gone on with."""
        states = {} if self._spool is None else self._spool.states(due.subject.kind, due.subject.id)
        begun = {label: state.eval_id for label, state in states.items() if state.state == "open"}
        job = Job(due, [(unit, begun.get(unit.label) or self._eval_id(own)) for unit in units], record=self._records)
        self._join(job)
        self._emit(job, read=not begun, begun=begun)
        return job

    async def _start_again(self, due: Due, units: Iterable[Unit], spool: EarlierUnits, own: Family | None) -> Job:
        subject = due.subject
        states: Mapping[str, UnitState] = spool.states(subject.kind, subject.id)
        begun = {label: state.eval_id for label, state in states.items() if state.state == "open"}
        undone = ("open", "failed") if self._retry else ("open",)
        done = {label for label, state in states.items() if state.state not in undone}
        wanted = [(unit, begun.get(unit.label) or self._eval_id(own)) for unit in units if unit.label not in done]
        job = Job(due, wanted, record=self._records and RECORD not in done)
        self._rejoin(job, spool, done)
        if moved(states, retry=self._retry):
            read, *job.kept = subject_events(self._ledger, spool, subject, done)
            await self._stream.flush()
            await self._stream.replay([read.event])
        read_before = spool.read_at(subject.kind, subject.id) is not None
        if read_before:
            self._seen.new(due.subject)  # recorded by the earlier process
        self._emit(job, read=not read_before, begun=begun)
        return job

    def _rejoin(self, job: Job, spool: EarlierUnits, done: Container[str]) -> None:
        """Take what an earlier process found of the subject into its family, under the parent's eval_id it named."""
        subject = job.due.subject
        if not self._families.tracks(subject):
            return
        earlier = subject_events(self._ledger, spool, subject, done)
        found = children_of([event.event for event in earlier if event.stands])
        named = next((verdict.parent_eval_id for verdict in found if verdict.parent_eval_id), None)
        job.family = self._families.of_child(subject, lambda: named)
        if job.family is not None:
            job.parent = job.family.eval_id
            job.family.children += found

    def _emit(self, job: Job, *, read: bool, begun: Collection[str]) -> None:
        due, subject, stream = job.due, job.due.subject, self._stream
        events = []
        if read:
            try:
                content_payload = content(due, stream.run_id)
            except DataError as error:
                if not self._live:
                    raise
                due = job.due = _unrecordable(due, error)  # the run serves other subjects, too
                subject, content_payload = due.subject, content(due, stream.run_id)
            has_trace = due.from_run is None and (subject.events or subject.trail.stop)
            traces = self._seen.new(subject) if has_trace else []
            if subject.events and due.from_run is None:
                content_payload["events"] = self._seen.places(subject)
            if subject.trail.stop and due.from_run is None:
                content_payload["trail"] = subject.trail.stop
            events.append(stream.event(SUBJECT_READ, content_payload, subject, "user_controlled"))
            if traces:
                events += trace_events(stream, traces)
        for unit, eval_id in job.units:
            if unit.label not in begun:
                payload = {
                    "eval_id": eval_id,
                    "subject_kind": subject.kind,
                    "subject_id": subject.id,
                    "judge": unit.label,
                    "trigger": due.trigger,
                    **unit.planned(subject.kind),
                }
                events.append(stream.event(EVAL_STARTED, payload, subject))
        stream.emit(events)


def _unrecordable(due: Due, error: DataError) -> Due:
    """Return *due* as a failed record: its subject has the identity alone, since the content is not JSON."""
    subject = due.subject
    bare = Subject(subject.kind, subject.id, session_id=subject.session_id, parent_id=subject.parent_id)
    return evolve(due, subject=bare, failure=Failure("source_error", str(error)))
