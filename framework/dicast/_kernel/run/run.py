"""One run, from the open ledger to the finished document."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..asking.budget import BudgetGate
from ..asking.call import Caller
from ..asking.paid_calls import RunServices
from ..classes import evolve
from ..contract.protocols import Ledger, Source
from ..events import BATCH_EVENTS, RUN_COMPLETED, RUN_STARTED, RUN_STOPPED, SINKS_ADDED, SOURCE_POSITION
from ..leases.hold_lease import live_run_check
from ..pipeline.lost_overrides import KIND as OVERRIDE_REPLACED
from ..pipeline.slots import ledger_slot
from ..plan.clauses import Gate
from ..plan.secret_mask import SecretMask
from ..plan.sections import Pipeline
from ..plan.variables import FileVariables
from ..records.plans import plan_and_result
from ..report.document import exit_code, stopped_document
from ..report.gate import as_it_ended, undecided_without
from ..resume import resume
from ..source.columns import checked_data
from ..source.shuffle import shuffled_source
from ..source.source import AHEAD, SubjectList, is_live, read, require_subjects
from ..stream.content import trace_events
from ..stream.opening import ComponentStack, open_component
from ..stream.sinks import SinkFeed, output
from ..stream.stream import BATCH, Stream
from ..timing.event_loop import patient_collector
from ..timing.stop import Stop
from ..timing.timer import Timer
from ..values import BatchLog, Due, ReadCounts, Results, RunContext, TraceEvent
from ..values.clock import Clock
from ..values.errors import Interrupted, LedgerError
from .direct import DirectWindow
from .end import (
    EARLY_STOP,
    Stopped,
    close_sinks,
    conclude,
    counted,
    failed,
    finish_sinks,
    gated_document,
    ledger_json,
    reserved_json,
    sinks_json,
    stopped_after,
)
from .live_window import LiveWindow
from .named_subjects import NamedSubjects, named_subjects
from .option_texts import changes_pace_alone, name_changes
from .plan import Plan, lookahead, make_plan, producer, run_started, unchanged_rubrics
from .request import Request, RunOutcome
from .started import recorded_command, with_request

if TYPE_CHECKING:
    from ..asking.earlier_units import EarlierUnits
    from ..records.observers import RecordObservers
    from ..report.fold import Report
    from ..source.filters import FilteredSource
    from .shard_run import ShardRun


class RunSteps:
    """Steps of one run, in order."""

    _leaves_segments = True  # a resumed run continues without the segments of its shards

    def __init__(
        self,
        pipeline: Pipeline,
        ledger: Ledger,
        clock: Clock,
        stop: Stop,
        context: RunContext,
        earlier: resume.EarlierRun | None,
        request: Request,
        mask: SecretMask,
    ) -> None:
        self._mask = mask
        self.pipeline, self.ledger, self.clock, self.stop = pipeline, ledger, clock, stop
        self.earlier, self.request, self.report = earlier, request, resume.new_report(ledger, live=request.live)
        self._batches = BatchLog(self._record_batch, request.cancel_batches)
        batches, look = None if request.live else self._batches, lookahead(pipeline)
        self.context = evolve(context, lookahead=look, record=self._record, batches=batches, live=request.live)
        self._stream: Stream | None = None
        self._executor: Any = None
        self._passing: set[asyncio.Future[None]] = set()
        self._source: Source | None = None
        self._subjects: NamedSubjects | None = None
        self._filtered: FilteredSource | None = None
        self._filter_digest: dict[str, str] = {}
        self._selected: dict[str, dict[str, dict[str, list[str]]]] = {}
        self.baseline: Results | None = None
        self._baselines: Mapping[str, Results | None] = {}
        self._observers: RecordObservers | None = None
        self._blank: list[dict[str, Any]] = []
        self._caller = Caller(Timer(), stop, mask, FileVariables(pipeline.named))
        self._shard: ShardRun | None = None
        if request.shard is not None:
            from .shard_run import ShardRun  # few runs are shards

            self._shard = ShardRun(request.shard, pipeline)

    async def carry_out(self, parts: ComponentStack) -> RunOutcome:
        """Open everything, judge, close, and return the outcome."""
        parts.enter_context(self._caller.ticking())
        try:
            source = self._source = await self._open_source(parts)
            data = await checked_data(source, self._source_name(), self.pipeline) | self._filter_digest
            await self._warn(source)
            counts = (getattr(source, "total", None), self._limit())
            self.report.expected = min((count for count in counts if count is not None), default=None)
            self._kinds, self._ordered = tuple(getattr(source, "kinds", ())), getattr(source, "ordered", True)
            if self.pipeline.scoring.audit is not None:
                from ..records.audit_rate import with_audit_rate  # few runs have audits

                self.pipeline = with_audit_rate(self.pipeline, self.ledger, self.earlier, self.report.expected)
            if self._shard is not None:
                self._shard.refuse_unfit(source, self._source_name(), data)
                self.report.expected = None  # of all shards
            rubrics = unchanged_rubrics(self.pipeline, self.ledger)
            self._find_baselines()
            part = parts.part("executor")
            executor = self._executor = await open_component(self.pipeline.executor.component, self.context, part)
            plan = await make_plan(self.pipeline, self.context, part, executor)
            ahead = 1 if self.pipeline.early_stop or not plan.inline else AHEAD
            slice_, name = self._slice_of(source), self._source_name()
            unchecked = read(slice_ or source, name, self.pipeline.base, most=self._limit(), ahead=ahead)
            subjects = unchecked if slice_ or is_live(source) else await require_subjects(unchecked)
            spool = await self._spool(data)
            feeds, request = await self._open_sinks(parts), self.request
            started = run_started(self.pipeline, plan, data, rubrics, request.limit, live=request.live)
            started = with_request(
                started, request, self._mask, self.report.expected, keeps_content=self.context.keeps_content
            )
            started |= self._selected | await self._split(source, data)
            observing = evolve(self.context, baseline=self.baseline)
            if self.pipeline.is_observed:
                from ..records.observers import RecordObservers  # few runs compute figures over records

                self._observers = await RecordObservers.open(self.pipeline, observing, source, parts, started)
        except KeyboardInterrupt:
            done = stopped_document(self.pipeline.name, "interrupted") | {"ledger": ledger_json(self.ledger)}
            return RunOutcome(done, exit_code(done))
        self.stop.has_started = True
        stream = self._stream = self._open_stream(feeds)
        stopped: Stopped = None
        try:
            await self._begin(stream, started, spool)
            await self._judge(stream, plan, subjects, spool)
            paused: Stopped = {"reason": "paused"} if getattr(source, "pauses", self.request.pause_after) else None
            stopped = self.stop.document() if self.stop else paused
        except Interrupted:
            stopped = self.stop.document()
        except LedgerError as error:
            stopped = failed(None, error)
        except BaseException:
            stream.commit()  # subjects judged before a defect, or before the source failed, can be resumed
            if self.request.reuse is not None:
                self.request.reuse.take(self.ledger, stream.run_id, is_scored=False)
            raise
        stopped = stopped and ({**stopped, "live": True} if self.request.live else stopped)
        return await self._end(stream, parts, stopped)

    def _find_baselines(self) -> None:
        if self.pipeline.baseline is not None or (self._shard is None and any(self.pipeline.gate.baselines())):
            from ..records.baseline import find_baseline, find_gate_runs  # few runs have a baseline

            run_id, experiments = self.context.run_id, self.request.experiments
            self.baseline = find_baseline(self.ledger, self.pipeline, run_id, experiments)
            self._baselines = find_gate_runs(self.ledger, self.pipeline, run_id, experiments)

    def _open_stream(self, feeds: Sequence[SinkFeed]) -> Stream:
        report, progress = self.report, self.request.progress
        advance = None if progress is None else lambda: progress(report)
        return Stream(self.context.run_id, self.clock, self.ledger, feeds, report.observe_all, advance)

    def _record(self, events: Sequence[TraceEvent], position: Mapping[str, object] | None = None) -> None:
        """See :class:`~dicast.RunContext`."""
        stream = self._stream
        if stream is None:
            raise RuntimeError("trace events can be recorded only while the subjects of a live source are read")
        stream.emit(trace_events(stream, events))
        if position is not None:
            stream.emit([stream.event(SOURCE_POSITION, position)])
        stream.commit()

    def _record_batch(self, type_: str, payload: Mapping[str, object]) -> None:
        """See :class:`~dicast.BatchLog`."""
        stream = self._stream
        if stream is None or type_ not in BATCH_EVENTS:
            raise RuntimeError(f"cannot record {type_}: only events of batches, and only while subjects are judged")
        stream.emit([stream.event(type_, payload)])
        stream.commit()
        # if every subject waits for the batch, no other code passes the event on
        passing = asyncio.ensure_future(stream.pass_on())
        self._passing.add(passing)
        passing.add_done_callback(self._passing.discard)

    async def _warn(self, source: Source) -> None:
        """Report replaced values of ``--set``, and blank texts in the prompt of the task, before the first call."""
        messages = [text for kind, text in self.pipeline.notes if kind == OVERRIDE_REPLACED]
        if self.pipeline.task is not None:
            from ..source.blank_columns import blank_columns  # only tasks have a prompt

            self._blank = await blank_columns(source, self._source_name(), self.pipeline, self._limit())
            messages += [warning["message"] for warning in self._blank]
        self.report.notices += messages
        if messages and (progress := self.request.progress):
            progress(self.report)

    async def _open_source(self, parts: ComponentStack) -> Source:
        slot = self.pipeline.source
        component = self.request.source or (slot and slot.component)
        assert component is not None  # a pipeline without a source is built only for other subjects
        source: Source = await open_component(component, self.context, parts.part("source"), "source")
        if self.request.filters:
            source = self._filter(source)
        source = source if self.request.reuse is None else self.request.reuse.noting(source)
        seed = None if slot is None else slot.shuffle
        return source if seed is None else shuffled_source(source, seed, live=self.request.live)

    def _slice_of(self, source: Source) -> Source | None:
        """Return the slice of *source* that a shard reads; None for a whole run, and if the run does not read all subjects in their order."""
        slot, request = self.pipeline.source, self.request
        is_shuffled = slot is not None and slot.shuffle is not None
        if self._shard is None or self._limit() is not None or request.filters or request.reuse or is_shuffled:
            return None
        return self._shard.part_of(source, self._source_name())

    def _filter(self, source: Source) -> Source:
        """Return *source* with the filters of the request."""
        from ..records.failing import resolve_filters  # most runs have no filter
        from ..source.filters import FilteredSource, filter_digest, selected_ids

        run_id, earlier = self.context.run_id, None if self.earlier is None else self.earlier.entry
        rules = resolve_filters(self.request.filters, self.ledger, self.pipeline, run_id, earlier)
        self._selected = {"selected": ids} if (ids := selected_ids(rules)) else {}
        self._filter_digest = {"filter": filter_digest(rules)}
        self._filtered = FilteredSource(source, rules)
        return self._filtered

    def _source_name(self) -> str:
        slot, is_program = self.pipeline.source, isinstance(self.request.source, SubjectList)
        return "the program" if is_program or slot is None else f"source {slot.name}"

    async def _spool(self, data: Mapping[str, str]) -> EarlierUnits | None:
        if self.earlier is None:
            return None
        setup = {**self.pipeline.setup, **data, **self.request.shard_setup}
        place = self.pipeline, getattr(self.ledger, "keeps_content", True)
        resume.refuse_changes(self.earlier, setup, partial(name_changes, *place), partial(changes_pace_alone, *place))
        if "split" in self.earlier.payload:
            from .segments import catch_up  # few runs are split

            await catch_up(self.ledger, self.earlier, leave=self._leaves_segments)
        return resume.index(self.ledger, self.earlier)

    async def _split(self, source: Source, data: Mapping[str, str]) -> dict[str, Any]:
        """Return the members of ``run.started`` for a run that is split; empty for a run that this process judges."""
        return {}

    async def _open_sinks(self, parts: ComponentStack) -> list[SinkFeed]:
        run, feeds = self.context, []
        outputs = resume.known_outputs(self.ledger, run.run_id) if run.resumed else set()
        for slot in self.pipeline.sinks:
            context = evolve(run, continued=output(slot, run.base) in outputs)
            live = await open_component(slot.component, context, parts.part(slot.path), slot.kind)
            place = self.pipeline.place_text(slot)
            feeds.append(SinkFeed.of(slot, live, self._caller.ask_sink, keeps_content=run.keeps_content, place=place))
        return feeds

    async def _begin(self, stream: Stream, started: Mapping[str, Any], spool: EarlierUnits | None) -> None:
        if self.earlier is None or spool is None:
            stream.emit([stream.event(RUN_STARTED, started)])
            await stream.flush()
            return
        may_change = {key: started[key] for key in resume.MAY_CHANGE}
        events = resume.replayed(self.ledger, self.earlier, spool, may_change, retry=self.request.retry_failed)
        while batch := list(islice(events, BATCH)):
            if self._observers:
                self._observers.observe(batch)
            await stream.replay(batch)
        if self._observers:
            self._observers.observe((), complete=True)
        if added := {*started["outputs"]} - resume.known_outputs(self.ledger, self.earlier.run_id):
            # recorded before the sinks write, so that a resuming process knows the files of the run
            stream.emit([stream.event(SINKS_ADDED, {"outputs": sorted(added)})])

    async def _judge(
        self, stream: Stream, plan: Plan, subjects: AsyncIterator[Due], spool: EarlierUnits | None
    ) -> None:
        whole, shard = self.pipeline.budget, self._shard
        limits, share = (whole, None) if shard is None else (shard.limits, shard.day)
        alive = live_run_check(self.ledger)
        budget = BudgetGate(limits, self.ledger, stream, self.clock, stream.run_id, alive, share, whole)
        if self.earlier is not None:
            budget.write_off()
        if self.request.reuse is not None:
            self.request.reuse.unpaid = budget.unpaid
        services = RunServices(plan.calls, self._caller, budget, spool or self.request.reuse)
        window = (LiveWindow if self.request.live else DirectWindow)(
            plan,
            services,
            stream,
            self.ledger,
            self.stop,
            concurrency=self.pipeline.executor.component.concurrency,
            retry=self.request.retry_failed,
            kinds=self._kinds,
            ordered=self._ordered,
            producer=producer(self.pipeline, plan, services, stream, self.clock.time),
            observers=self._observers,
        )
        with patient_collector():
            calls = () if isinstance(self._source, SubjectList) else plan.calls.values()
            self._subjects = named_subjects(subjects, calls, self._source)
            subjects, limit = self._subjects or subjects, self._limit()
            if self._shard is not None:
                subjects, limit = self._shard.pick(subjects, limit, plan.calls.values()), None
            await window.run(subjects, limit)
        if not self.request.pause_after:
            budget.close()
        await stream.flush()

    def _limit(self) -> int | None:
        requested = self.request.limit
        limit = self.earlier.payload["limit"] if requested is None and self.earlier is not None else requested
        return self.request.pause_after if limit is None else limit

    def _counted(self, report: Report) -> tuple[ReadCounts | None, dict[str, str]]:
        return counted(self._source, self._source_name(), report)

    def _source_warnings(self) -> list[dict[str, Any]]:
        """Return the warnings about the subjects that the source gave."""
        parts = (self._subjects, self._filtered)
        return [*self._blank, *(warning for part in parts if part is not None for warning in part.warnings())]

    async def _end(self, stream: Stream, parts: ComponentStack, stopped: Stopped) -> RunOutcome:
        """Close the sinks, then record the end of the run: a run killed in between is resumed."""
        stopped, pipeline, concluded = stopped_after(stopped, stream.commit), self.pipeline, {}
        pipeline = pipeline if self._shard is None else evolve(pipeline, gate=Gate())  # the merge decides
        is_over = stopped is None or stopped["reason"] == EARLY_STOP
        if stopped is None or stopped["reason"] != "ledger_failed":
            of_run = self._observers, stream, self.report, self.ledger, pipeline, self.baseline, self._mask
            concluded = conclude(*of_run, is_complete=is_over)
            stopped = stopped_after(stopped, stream.commit)
        await stream.pass_on()
        report = resume.settled_report(self.report, self.ledger)
        intervals = dict(self._observers.intervals() if self._observers else ())
        counts, uncounted, warnings = *self._counted(report), self._source_warnings()
        command = recorded_command(self.request, self._mask, keeps_content=getattr(self.ledger, "keeps_content", True))
        done = gated_document(self.ledger, pipeline, report, self._baselines, stopped, intervals, counts, command)
        done |= concluded
        done |= undecided_without({"gate": done["gate"], "undecided": done["undecided"]}, done)
        done["broken"] |= uncounted
        done["warnings"] += warnings
        done["warnings"] += [{"kind": kind, "message": text} for kind, text in pipeline.notes]
        done |= plan_and_result(self.ledger, report.started, done) if is_over else {}
        done |= {} if self._shard is None else self._shard.members(done, warnings)
        done |= reserved_json(self.ledger, stream.run_id, stopped) if done.get("batches") else {}
        done = self._mask.document(done)
        last = RUN_COMPLETED if is_over else RUN_STOPPED
        await close_sinks(stream, self.ledger, lambda feed: last not in feed.wants and bool(feed.wants))
        reason = {} if stopped is None else {"reason": stopped["reason"]}
        event = stream.event(last, {**reason, **done, "sinks": self._mask.data(sinks_json(stream, ahead=1))})
        await stream.publish([event])
        done["sinks"] = self._mask.data(await finish_sinks(stream, self.ledger, parts, pipeline.sinks))
        recorded = evolve(event, payload={**event.payload, "sinks": done["sinks"]})  # no sink knew the last losses
        stopped = stopped_after(stopped, lambda: self.ledger.append([recorded]))
        root = None
        if "split" in report.started or "shards" in report.started:
            from ..resume.shard_roots import read_root  # few runs are in shards

            root = read_root(self.ledger, stream.run_id)
        done["ledger"] = self._mask.data(ledger_json(self.ledger, ledger_slot(self.pipeline), root))
        if self.request.reuse is not None:
            self.request.reuse.take(self.ledger, stream.run_id, is_scored=bool(done["scored"]))
        await parts.aclose()
        done |= {"cancelled_batches": [*self._batches.cancelled.values()]} if self._batches.cancelled else {}
        if fault := (faults := parts.faults).pop("ledger", None):
            stopped = failed(stopped, LedgerError(fault))
        broken = {at: f"{at}: {fault}" for at, fault in faults.items()} | done["broken"]
        done |= as_it_ended({"gate": done["gate"], "undecided": done["undecided"]}, stopped)
        done |= self._mask.document({"stopped": stopped, "broken": broken})
        return RunOutcome(done, exit_code(done))
