"""The main loop: subjects in, verdicts out, in the order of the source.

At most :data:`AHEAD` times *concurrency* subjects are under way (at least :data:`WINDOW`), and a subject begins only when
the one that many places before it has been told to ledger and sinks. So the stream of events is the same however long each
judge takes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from typing import Any

import attrs

from ..errors import Interrupted
from ..model import Event, Subject, Verdict, sensitivity
from ..protocols import Ledger
from ..spool import UnitSpool, UnitState
from .content import Traces, content, trace_event
from .families import PARENTS, Families, Family, children_of
from .interrupt import Stop
from .plan import Plan
from .resume import Earlier, moved, subject_events
from .stream import SECONDS, Stream
from .teller import Desk
from .unit import Unit

AHEAD = 4
"""Subjects under way for each call that may be made at the same time: a slow one does not keep the others waiting."""

WINDOW = 128
"""Subjects under way at least, so that up to a concurrency of 32 the stream does not depend on it."""


@attrs.define
class Job:
    """One subject under way, with the units that judge it under their eval_ids.

    *kept* is what an earlier process left of it, to be told together with this one's *events*; *children* are the verdicts
    on what it is made of, *family* is what it is itself a part of.
    """

    subject: Subject
    units: Sequence[tuple[Unit, str]]
    events: list[Event] = attrs.field(factory=list)
    kept: Sequence[Earlier] = ()
    children: Sequence[Verdict] = ()
    family: Family | None = None
    task: asyncio.Task[None] | None = None


class Judging:
    """Judges the subjects of one run."""

    def __init__(
        self,
        plan: Plan,
        desk: Desk,
        stream: Stream,
        ledger: Ledger,
        stop: Stop,
        *,
        concurrency: int,
        retry: bool,
        kinds: Collection[str],
    ) -> None:
        """*kinds* are those that the source yields; empty when it does not say."""
        self._plan, self._desk, self._stream, self._ledger, self._stop = plan, desk, stream, ledger, stop
        self._retry = retry
        self._inline = plan.inline
        self._limit = max(WINDOW, AHEAD * concurrency)
        self._slots = asyncio.Semaphore(concurrency)
        self._window: deque[Job] = deque()
        self._units: dict[str, tuple[Unit, ...]] = {}
        judged = {kind for kind in kinds or PARENTS.values() if plan.units_for(kind)}
        self._families = Families(judged, stream.clock.id)
        self._traces = Traces()

    async def run(self, subjects: AsyncIterator[Subject], limit: int | None) -> int:
        """Judge *subjects*, at most *limit*; return how many were read.

        :raises Interrupted: when the run was asked to stop; what was judged is kept.
        """
        count = 0
        try:
            if limit != 0:
                async for subject in subjects:
                    count += 1
                    await self._take(subject)
                    if count == limit:
                        break
            while self._window:
                await self._finish_first()
        finally:
            await self._abandon()
        return count

    async def _take(self, subject: Subject) -> None:
        self._heed()
        if len(self._window) >= self._limit:
            await self._finish_first()
        job = await self._start(subject)
        if self._inline:
            await self._work(job)
            await self._tell_end(job)
        else:
            job.task = asyncio.create_task(self._work_in_turn(job))
            self._window.append(job)
        if self._stream.due:
            await self._flush()

    def _heed(self) -> None:
        if self._stop:
            raise Interrupted(str(self._stop.reason))

    async def _flush(self) -> None:
        await self._stream.flush()
        await asyncio.sleep(0)

    async def _start(self, subject: Subject) -> Job:
        """Tell that the subject was read and which verdicts are begun; what an earlier process told is not told again."""
        units = self._units.get(subject.kind)
        if units is None:
            units = self._units[subject.kind] = self._plan.units_for(subject.kind)
        spool = self._desk.spool
        own = self._families.take(subject)
        while own is not None and self._window:
            await self._finish_first()  # the verdicts on what it is made of, all of them
        if spool is not None:
            job = await self._start_again(subject, units, spool.states(subject.kind, subject.id), own)
        else:
            job = Job(subject, [(unit, self._eval_id(own)) for unit in units])
            job.family = self._families.of_child(subject)
            self._tell_start(job, read=True, begun=())
        job.children = () if own is None else own.children
        return job

    def _eval_id(self, family: Family | None) -> str:
        """The id that the children's verdicts have named already, once; else a new one."""
        if family is None or not family.eval_id:
            return self._stream.clock.id()
        eval_id, family.eval_id = family.eval_id, ""
        return eval_id

    async def _start_again(
        self, subject: Subject, units: Iterable[Unit], states: Mapping[str, UnitState], own: Family | None
    ) -> Job:
        spool = self._desk.spool
        assert spool is not None  # only a resumed run starts again
        wanted: list[tuple[Unit, str]] = []
        begun = []
        for unit in units:
            state = states.get(unit.label)
            if state is not None and state.state == "open":
                begun.append(unit.label)
                wanted.append((unit, state.eval_id))
            elif state is None or (self._retry and state.state == "failed"):
                wanted.append((unit, self._eval_id(own)))
        job = Job(subject, wanted)
        self._rejoin(job, spool)
        if moved(states, retry=self._retry):
            read, *job.kept = subject_events(self._ledger, spool, subject, retry=self._retry)
            await self._stream.flush()
            await self._stream.tell_again([read.event])
        read_before = spool.read_at(subject.kind, subject.id) is not None
        if read_before:
            deque(self._traces.untold(subject), maxlen=0)  # told by the earlier process
        self._tell_start(job, read=not read_before, begun=begun)
        return job

    def _rejoin(self, job: Job, spool: UnitSpool) -> None:
        """Take what an earlier process found of the subject into its family, under the parent's eval_id it named."""
        if not self._families.tracks(job.subject):
            return
        earlier = subject_events(self._ledger, spool, job.subject, retry=self._retry)
        found = children_of([event.event for event in earlier if event.stands])
        named = next((verdict.parent_eval_id for verdict in found if verdict.parent_eval_id), None)
        job.family = self._families.of_child(job.subject, named)
        if job.family is not None:
            job.family.children += found

    def _tell_start(self, job: Job, *, read: bool, begun: Sequence[str]) -> None:
        subject, stream = job.subject, self._stream
        events = []
        if read:
            events.append(stream.event("subject.read", content(subject), subject, "user_controlled"))
            if subject.events:
                events += [trace_event(stream, trace) for trace in self._traces.untold(subject)]
        for unit, eval_id in job.units:
            if unit.label not in begun:
                payload = {
                    "eval_id": eval_id,
                    "subject_kind": subject.kind,
                    "subject_id": subject.id,
                    "judge": unit.label,
                    "trigger": "batch",
                    **unit.planned(subject.kind),
                }
                events.append(stream.event("eval.started", payload, subject))
        stream.tell(events)

    async def _work_in_turn(self, job: Job) -> None:
        async with self._slots:
            self._heed()
            await self._work(job)

    async def _work(self, job: Job) -> None:
        """Make every verdict of the subject; nothing is told yet."""
        subject, stream = job.subject, self._stream
        for unit, eval_id in job.units:
            parent = job.family.eval_id if job.family else None
            type_, payload = await unit.judge(self._desk, subject, eval_id, job.children, parent)
            job.events.append(stream.event(type_, payload, subject, sensitivity(payload)))

    async def _tell_end(self, job: Job) -> None:
        """Tell all terminal events of a subject with no other's in between."""
        if job.kept:
            await self._stream.flush()
            for earlier in job.kept:
                await self._stream.tell_again([earlier.event], counted=earlier.stands)
        self._stream.tell(job.events)
        if job.family is not None:
            job.family.children += children_of(job.events)

    async def _finish_first(self) -> None:
        """Wait for the oldest subject and tell its verdicts; what is due meanwhile is passed on."""
        task = self._window[0].task
        assert task is not None  # only subjects with a task are in the window
        if not task.done():
            await self._wait(task)
        task.result()
        await self._tell_end(self._window.popleft())

    async def _wait(self, task: asyncio.Task[None]) -> None:
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            while not task.done():
                await asyncio.wait({task, stopping}, timeout=SECONDS, return_when=asyncio.FIRST_COMPLETED)
                self._heed()
                if self._stream.due:
                    await self._flush()
        finally:
            stopping.cancel()

    async def _drain(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Wait for what is being bought, so that it is heard and settled, unless the user asks to stop."""
        interrupted = asyncio.ensure_future(self._stop.interrupted.wait())
        done = asyncio.gather(*tasks, return_exceptions=True)
        try:
            both: set[asyncio.Future[Any]] = {done, interrupted}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            interrupted.cancel()
            done.cancel()

    async def _abandon(self) -> None:
        """End what is still under way; verdicts that are ready and next in order are told."""
        tasks = [job.task for job in self._window if job.task is not None]
        if self._stop.drains:
            await self._drain(tasks)
        ready = True
        for job in self._window:
            ready = ready and job.task is not None and job.task.done() and job.task.exception() is None
            if ready:
                await self._tell_end(job)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._window.clear()
