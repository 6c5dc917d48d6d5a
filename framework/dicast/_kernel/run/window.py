"""Main loop of a run: subjects in, verdicts out, in the order of the source.

At most N subjects are in progress: :data:`AHEAD` times *concurrency*, and at least :data:`WINDOW`. A subject starts only when the
subject N places before it is in the ledger, so the order of subjects and verdicts does not depend on the time that a judge takes. Events
about money are recorded between them, at the time of their calls. If the run may stop early, N is *concurrency*: fewer than N subjects start
after the subject that stops the run. If chat models collect calls for batches, N is :data:`~.stage.MAX_COLLECTED`, because a batch has the calls of all subjects in progress.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from ..asking.paid_calls import RunServices
from ..asking.unit import Unit
from ..contract.protocols import Ledger
from ..plan.sections import RECORD
from ..resume.queries import new_verdict
from ..resume.resume import forbidden_calls, moved, subject_events
from ..stream.stream import SECONDS, Stream
from ..timing.stop import Stop
from ..timing.turns import Permits, subject_turn, together
from ..values import PARENTS, Due, Event, Subject, sensitivity
from ..values.errors import Interrupted
from .begin import Job, Starter
from .children import ChildVerdicts, children_of
from .plan import Plan
from .stage import MAX_COLLECTED, Stage

if TYPE_CHECKING:
    from ..asking.earlier_units import EarlierUnits
    from ..asking.task import Producer
    from ..records.observers import RecordObservers

AHEAD = 4
"""Subjects in progress for each concurrent call, so that a slow subject does not delay others."""

WINDOW = 128
"""Smallest number of subjects in progress, so that the stream does not depend on a concurrency up to 32."""


class Window:
    """Window of subjects in progress; judges the subjects of one run."""

    live = False

    def __init__(
        self,
        plan: Plan,
        services: RunServices,
        stream: Stream,
        ledger: Ledger,
        stop: Stop,
        *,
        concurrency: int,
        retry: bool,
        kinds: Collection[str],
        ordered: bool = True,
        producer: Producer | None = None,
        observers: RecordObservers | None = None,
    ) -> None:
        """Create the window.

        :param kinds: the kinds that the source yields; empty if it does not declare them.
        :param ordered: record the subjects in the order of the source; otherwise each subject as soon as it is judged.
        """
        self._run, self._stream, self._ledger, self._stop = services, stream, ledger, stop
        self._inline, self._retry, self._producer, self._observers = plan.inline, retry, producer, observers
        self._stop_details = (
            None if observers is None else observers.stopped
        )  # an earlier process may have decided the stop
        self._stopped_early = False
        watched = observers is not None and observers.may_stop
        self._is_watched = watched
        self._limit = concurrency if watched else MAX_COLLECTED if plan.collecting else max(WINDOW, AHEAD * concurrency)
        self._turns = Permits(concurrency) if plan.collecting else asyncio.Semaphore(concurrency)
        self._collecting = plan.collecting
        self._stage: Stage | None = None
        self._window: deque[Job] = deque()
        self._ordered = ordered
        self._answers: list[tuple[Callable[[Sequence[Event]], object], Sequence[Event]]] = []
        judged = {kind for kind in kinds or PARENTS.values() if plan.units_for(kind)}
        self._families = ChildVerdicts(judged, stream.clock.id)
        self._starter = Starter(
            plan,
            services.spool,
            stream,
            ledger,
            self._families,
            retry=retry,
            live=self.live,
            records=producer is not None,
        )

    async def run(self, subjects: AsyncIterator[Due], limit: int | None) -> int:
        """Judge *subjects*, at most *limit*; return the number of subjects read.

        :raises Interrupted: when the run was asked to stop; finished verdicts are kept.
        """
        count = 0
        if isinstance(self._turns, Permits):
            self._stage = Stage(self._collecting, self._turns)
        try:
            if limit != 0:
                async for due in self._arriving(subjects):
                    count += 1
                    await self._take(due)
                    if self._is_watched and len(self._window) >= self._limit:
                        await self._finish_first()  # it may stop the run, which then reads no further subject
                    if count == limit or (self._stopped_early and self._run.spool is None):
                        break
            while self._window:
                await self._finish_first()
            if self._answers:
                await self._flush()
            if self._stop_details is not None:
                self._stop.request("early_stop", None, self._stop_details)
        finally:
            await self._abandon()
            if self._stage is not None:
                await self._stage.close()
        return count

    def _is_owed(self, subject: Subject) -> bool:
        """Return True if *subject* must be judged although the run stopped early.

        An earlier process started the subject, or the subject failed in an earlier process that stopped early.
        """
        spool = self._run.spool
        if spool is None or spool.read_at(subject.kind, subject.id) is None:
            return False
        states = spool.states(subject.kind, subject.id)
        open_ = RECORD not in states or any(state.state == "open" for state in states.values())
        return open_ or (not self._stopped_early and moved(states, retry=self._retry))

    def _arriving(self, subjects: AsyncIterator[Due]) -> AsyncIterator[Due]:
        """Return the subjects to judge, from the source."""
        return subjects

    async def _take(self, due: Due) -> None:
        self._end_if_asked()
        if len(self._window) >= self._limit:
            await self._finish_first()
        if self._window:
            await self._await_children(due.subject)
        if self._stop_details is not None and not self._is_owed(due.subject):
            return
        await self._begin(due)
        if self._stream.due:
            await self._flush()

    async def _begin(self, due: Due) -> None:
        """Start the next subject."""
        await self._judge(await self._starter.start(due))

    async def _judge(self, job: Job) -> None:
        """Judge the subject of *job*: at once if no call waits."""
        self._window.append(job)
        if self._inline:
            await self._work(job)
            await self._emit_end(self._window.popleft())
        else:
            job.task = asyncio.create_task(self._work_in_turn(job))

    def _end_if_asked(self) -> None:
        if self._stop:
            raise Interrupted(str(self._stop.reason))

    async def _flush(self) -> None:
        await self._stream.flush()
        answers, self._answers = self._answers, []
        for answered, events in answers:
            answered(events)
        await asyncio.sleep(0)

    async def _await_children(self, subject: Subject) -> None:
        """Wait until all child verdicts for the judges of *subject* are recorded."""
        while self._window and self._awaits(subject):
            await self._finish_first()

    def _awaits(self, subject: Subject) -> bool:
        return self._families.awaits(subject)

    async def _work_in_turn(self, job: Job) -> None:
        async with subject_turn(self._turns):
            self._end_if_asked()
            await self._work(job)

    async def _work(self, job: Job) -> None:
        """Make every verdict of the subject without emitting it."""
        subject, stream, failure, production = job.due.subject, self._stream, job.due.failure, None
        if self._producer is not None and (job.record or any(isinstance(unit, Unit) for unit, _ in job.units)):
            production = await self._producer.make(subject, failure)
            if self._run.spool is not None:
                self._run.spool.note_outputs(subject, production.outputs)
            job.events += [production.event] if job.record and production.event is not None else []
        elif failure is not None:
            from ..asking.task import Production  # few runs have a task

            production = Production([failure])
        verdicts = (
            unit.judge(self._run, subject, eval_id, job.children, job.parent, production, job.ready)
            for unit, eval_id in job.units
        )
        # If models answer in batches, all labels are judged at once; otherwise each label needs a separate batch.
        ready = iter(await together([*verdicts])) if self._stage is not None and len(job.units) > 1 else None
        for unit, _ in job.units:
            type_, payload = await next(verdicts) if ready is None else next(ready)
            level = "user_controlled" if unit.keeps_texts else sensitivity(payload)
            job.events.append(stream.event(type_, payload, subject, level))

    async def _emit_end(self, job: Job) -> None:
        """Emit all terminal events of a subject without another subject's events in between."""
        if job.earlier:
            await self._stream.flush()
            for earlier in job.earlier:
                await self._stream.replay([earlier.event], counted=earlier.is_current)
        self._stream.emit(job.events)
        if job.due.from_run is not None:
            self._starter.recorded.note(job.events)
        if self._observers is not None:
            current = [earlier.event for earlier in job.earlier if earlier.is_current]
            self._observe(self._observers, job.due.subject, [*current, *job.events])
        due, spool = job.due, self._run.spool
        if due.answered is not None:
            self._answers.append((due.answered, job.events))
        if spool is not None and (self.live or job.earlier):
            spool.forget(due.subject.kind, due.subject.id)
        if job.family is not None and due.from_run is None:
            job.family.children += children_of(job.events, new_verdict)

    def _observe(self, observers: RecordObservers, subject: Subject, events: Sequence[Event]) -> None:
        """Pass the run's records to the observers; if they stop the run early, no further subject starts."""
        observers.observe(events, subject, complete=True)
        if observers.stopped is not None and self._stop_details is None:
            self._stop_details, self._stopped_early = observers.stopped, True

    async def _finish_first(self) -> None:
        """Wait for the next subject and emit its verdicts; meanwhile pass on the events that are due."""
        job = self._next()
        assert job.task is not None  # only subjects with a task are in the window
        if not job.task.done():
            await self._wait(job.task)
        job.task.result()
        self._window.remove(job)
        await self._emit_end(job)

    def _next(self) -> Job:
        """Return the oldest subject; without an order, the oldest judged subject, if there is one."""
        if self._ordered:
            return self._window[0]
        done = (job for job in self._window if job.task is not None and job.task.done())
        return next(done, self._window[0])

    async def _wait(self, task: asyncio.Task[None]) -> None:
        with nullcontext() if self._stage is None else self._stage.reader_waits():
            await self._wait_for(task)

    async def _wait_for(self, task: asyncio.Task[None]) -> None:
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            while not task.done():
                if self._stage is not None:
                    self._stage.check()
                await asyncio.wait({task, stopping}, timeout=SECONDS, return_when=asyncio.FIRST_COMPLETED)
                self._end_if_asked()
                if self._stream.due:
                    await self._flush()
        finally:
            stopping.cancel()

    async def _drain(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Wait for paid calls in progress, so that they are recorded and settled, until the user asks to stop. Do not wait for batches."""
        done = asyncio.gather(*tasks, return_exceptions=True)
        ends: set[asyncio.Future[Any]] = {done, asyncio.ensure_future(self._stop.interrupted.wait())}
        if self._stage is not None:
            ends.add(asyncio.ensure_future(self._stage.quiet()))
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()

    async def _abandon(self) -> None:
        """End the subjects in progress; emit the verdicts that are ready and next in order."""
        tasks = [job.task for job in self._window if job.task is not None]
        if self._stop.drains:
            await self._drain(tasks)
        ready = True
        for job in self._window:
            ready = ready and job.task is not None and job.task.done() and job.task.exception() is None
            if ready:
                await self._emit_end(job)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._run.spool is not None:
            await self._emit_unreached(self._run.spool)
        self._window.clear()

    async def _emit_unreached(self, spool: EarlierUnits) -> None:
        """Replay the recorded events of subjects selected for retry that were not reached."""
        started = {(job.due.subject.kind, job.due.subject.id) for job in self._window}
        for key in spool.moved(retry=self._retry):
            subject = Subject(*key)
            read, *events = subject_events(self._ledger, spool, subject, spool.states(*key))
            if key not in started:
                calls = forbidden_calls(self._ledger, self._stream.run_id, subject) if self._retry else []
                await self._stream.replay([read.event, *calls])
            await self._emit_end(Job(Due(subject), (), earlier=events))
