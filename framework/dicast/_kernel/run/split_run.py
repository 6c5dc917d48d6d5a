"""Run whose executor has shards of it judged elsewhere: in other processes, or on other machines."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..asking.earlier_units import EarlierUnits
from ..classes import evolve
from ..contract.plugin_errors import describe_error
from ..contract.protocols import Source
from ..events import SHARD_COMMITTED, SHARD_MERGED, SHARD_MERGING, SUBJECT_READ
from ..pipeline.default_ledger import ledger_component
from ..pipeline.ledger_path import LEDGER_PATH, ledger_place
from ..pipeline.slots import ledger_slot
from ..report.fold import Report
from ..source.filters import Failing
from ..source.shard import MOST_SHARDS
from ..source.source import iterate
from ..stream.opening import ComponentStack
from ..stream.stream import Stream
from ..timing.event_loop import patient_collector
from ..values import Cost, Due, Event, Query, ReadCounts
from ..values.errors import ConfigError, DicastError, PluginError, Problem
from .allotment import Allotment
from .host import ShardHost, Shards
from .merge import MergeSteps
from .merged_events import MergedEvents, SubjectEvents, are_slices, read_subject
from .plan import Plan
from .request import RunOutcome
from .segments import Segments, bounds_json, is_merged, next_bounds, open_numbers, read_bounds
from .shard_run import refuse_without_digest
from .shard_set import ShardRecord, ShardSet


class SplitSteps(MergeSteps):
    """Steps of a run that is split into shards. A resumed run without open shards is judged in this process."""

    _leaves_segments = False
    _segments: Segments | None = None
    _shards: ShardSet | None = None  # type: ignore[assignment]  # unknown until the shards have ended
    _is_whole = False
    _spool_of_run: EarlierUnits | None = None

    async def carry_out(self, parts: ComponentStack) -> RunOutcome:
        """Have the shards judged, and conclude the run; then remove its segments from the default folder."""
        outcome = await super().carry_out(parts)
        option = getattr(self.pipeline.executor.component, "segments", None)
        if self._is_whole and self._segments is not None and option is None and outcome.document["stopped"] is None:
            for file in self._segments.files():
                file.unlink()
            _remove_empty(Path(str(self._segments.folder)))
        return outcome

    async def _split(self, source: Source, data: Mapping[str, str]) -> dict[str, Any]:
        run_id = self.context.run_id
        if self.earlier is not None:
            self._segments = Segments.of_run(run_id, self.earlier.payload)
            self._segments = None if is_merged(self.ledger, run_id) else self._segments
            if self._segments is not None and self.request.retry_failed:
                message = "--retry-failed judges failures of whole runs again, and this run has open shards"
                raise ConfigError(f"{message}; resume it without --retry-failed first")
            return {}
        self._refuse_unfit(source, data)
        count = self.report.expected
        if count is None:
            count = 0
            async for _ in iterate(source):
                count += 1
            count = count if (limit := self._limit()) is None else min(count, limit)
        of = min(MOST_SHARDS, max(1, math.ceil(count / self.pipeline.executor.component.shard)))
        self._segments = evolve(self._places(run_id, of), size=self.pipeline.executor.component.shard)
        return {"split": self._segments.json()}

    def _refuse_unfit(self, source: Source, data: Mapping[str, str]) -> None:
        """Refuse a run that cannot be split.

        :raises ConfigError: naming the reason.
        """
        executor, request = self.pipeline.executor.name, self.request
        refuse_without_digest(source, self._source_name(), data, executor)
        reasons = {
            "early_stop decides by the subjects before, and a shard has only some of them": self.pipeline.early_stop,
            "the program gives the subjects": request.source is not None,
            "the pipeline has objects of the program, which are no plain data": self.pipeline.spec is None,
            "--watch keeps the replies in this process": request.reuse is not None,
            "--filter failing needs the ledger of the run": any(isinstance(rule, Failing) for rule in request.filters),
            "--shard judges one shard": request.shard is not None,
        }
        for reason, holds in reasons.items():
            if holds:
                message = f"{executor} cannot split this run: {reason}; use executor: dicast/async"
                raise ConfigError(Problem(message, self.pipeline.file, path="executor"))
        if self._mask.data(self.pipeline.spec) != self.pipeline.spec:
            message = f"{executor} sends the pipeline to its workers, and a value of it is a secret"
            advice = "write ${NAME} in its place, and set the variable NAME for the workers"
            raise ConfigError(Problem(f"{message}; {advice}", self.pipeline.file, path="executor"))

    def _places(self, run_id: str, of: int) -> Segments:
        """Return the places of the segments: the executor's option ``segments``, else a folder next to the ledger of the run.

        :raises ConfigError: if they are in the ledger of the run.
        """
        option: str | None = getattr(self.pipeline.executor.component, "segments", None)
        if option is None:
            ledger = Path(getattr(self.ledger, "path", None) or LEDGER_PATH)
            return Segments(run_id, of, str(Path(f"{ledger.absolute()}.shards", run_id)))
        place = ledger_place(option)
        if isinstance(place, Path):
            return Segments(run_id, of, str(Path(self.pipeline.base, place, run_id).absolute()))
        if ledger_component(place)[1] == ledger_slot(self.pipeline).component:
            message = f"{self.pipeline.executor.name}: segments is the ledger of the run, which would count the spending twice"
            raise ConfigError(Problem(f"{message}; name another ledger", self.pipeline.file, path="executor"))
        return Segments(run_id, of, None, place)

    async def _judge(
        self, stream: Stream, plan: Plan, subjects: AsyncIterator[Due], spool: EarlierUnits | None
    ) -> None:
        segments, self._spool_of_run = self._segments, spool
        if segments is None:
            await super()._judge(stream, plan, subjects, spool)
            return
        await stream.flush()
        async with segments.opened() as records:
            numbers = open_numbers(records, segments.of)
        budget = self.pipeline.budget
        committed: Mapping[int, Any] = {}
        allotment = Allotment() if self.earlier is None else Allotment.left_open(self.ledger, stream.run_id, budget)
        if numbers and not self.stop:
            if not allotment.ids and any(call.estimate is not None for call in plan.calls.values()):
                allotment = await Allotment.take(stream, self.clock, budget)
            committed = await self._run_shards(stream, segments, numbers, allotment)
            await segments.wait_for_workers()
        async with segments.opened(committed) as records:
            await self._merge(stream, segments, records, allotment)

    async def _run_shards(
        self, stream: Stream, segments: Segments, numbers: Sequence[int], allotment: Allotment
    ) -> dict[int, Any]:
        """Have the shards with *numbers* judged by the executor; return the heads of the committed shards, by number."""
        committed = dict[int, Any]()
        references = {number: self._reference(segments, number, allotment) for number in numbers}
        shards = Shards(segments.of, str(references[numbers[0]]["digest"]), references)

        def record(segment: Mapping[str, Any]) -> None:
            committed[segment["number"]] = segment["head"]
            stream.emit([stream.event(SHARD_COMMITTED, segment)])
            stream.commit()

        shown = Report()
        shown.expected = self.report.expected

        def show(judged: int) -> None:
            shown.judged = judged
            if self.request.progress is not None:
                self.request.progress(shown)

        executor, name = self._executor, self.pipeline.executor.name
        assert self.pipeline.spec is not None  # refused before, and a resumed run has the same pipeline
        try:
            await executor.run(ShardHost(self.pipeline.spec, self.stop.event, shards, record, show), shards)
        except DicastError:
            raise
        except Exception as error:  # the border to a plugin's code
            raise PluginError(f"{name}: {describe_error(error, type(executor).__module__)}") from error
        return committed

    def _reference(self, segments: Segments, number: int, allotment: Allotment) -> dict[str, Any]:
        started, amounts = self.report.started, allotment.amounts
        allotment_json = {
            "id": allotment.ids[0] if allotment.ids else segments.run_id,
            "amounts": [_cap(cost) for cost in amounts],
        }
        return {
            "number": number,
            "of": segments.of,
            "run_id": segments.run_id,
            "place": segments.place(number),
            "is_file": segments.folder is not None,
            "digest": started["setup"]["data"],
            "allotment": allotment_json if amounts else None,
            "setup": dict(self.pipeline.setup),
            "limit": self._limit(),
            "filters": [rule.text for rule in self.request.filters],
            "trusts_all": self.request.trusts_all,
            "size": segments.size,
            "concurrency": self.pipeline.executor.component.concurrency,
        }

    async def _merge(
        self, stream: Stream, segments: Segments, records: Sequence[ShardRecord], allotment: Allotment
    ) -> None:
        """Record the events of the segments that the ledger of the run lacks, release *allotment*, and stop the run if a shard is not complete."""
        self._shards = shards = ShardSet(sorted(records, key=lambda record: record.number))
        bounds, start, _ = read_bounds(self.ledger, segments.run_id)
        left = open_numbers(records, segments.of)
        is_first = not left and start is None
        newest, streams = next_bounds(bounds, records), are_slices(shards)
        events = MergedEvents(shards, None if is_first else newest, streams=streams, together=self._observers is None)
        stream.emit([stream.event(SHARD_MERGING, bounds_json(newest, streams=streams))])
        with patient_collector():
            for subject in events.subjects(stream.run_id, self.clock):
                await self._record_subject(stream, self._with_row(subject))
        ends = allotment.release_events(stream.event)
        if not left:
            ends += [*self._root_events(stream, events.root()), stream.event(SHARD_MERGED, {"is_complete": True})]
            self._is_whole = True
        stream.emit(ends)
        await stream.flush()
        if left and not self.stop:
            details = {"shards": f"{len(left):,} of {segments.of:,} shards are not complete: {self._reasons(left)}"}
            self.stop.request("unfinished_shards", None, details)

    def _reasons(self, numbers: Sequence[int]) -> str:
        assert self._shards is not None  # set before
        reasons = {record.number: record.reason for record in self._shards.shards if not record.is_complete}
        texts = [f"{number}: {reasons.get(number, 'no worker began it')}" for number in numbers]
        return ", ".join(texts[:3]) + (" …" if len(texts) > 3 else "")

    def _with_row(self, subject: SubjectEvents) -> SubjectEvents:
        """Return *subject* with the beginning of its events, if only that is in the ledger of the run."""
        spool = self._spool_of_run
        if spool is None or self._observers is None or subject.subject is not None:
            return subject
        first = subject.events[0]
        if first.subject_id is None:
            return subject
        row = spool.read_at(str(first.subject_kind), first.subject_id)
        entries = () if row is None else self.ledger.read(Query(after=row - 1, limit=1))
        earlier: list[Event] = [entry.event for entry in entries if entry.event.type == SUBJECT_READ]
        return evolve(subject, read=read_subject(earlier)) if earlier else subject

    def _counted(self, report: Report) -> tuple[ReadCounts | None, dict[str, str]]:
        if self._shards is None or not self._shards.shards:
            return super(MergeSteps, self)._counted(report)
        return super()._counted(report)

    def _source_warnings(self) -> list[dict[str, Any]]:
        if self._shards is None or not self._shards.shards:
            return super(MergeSteps, self)._source_warnings()
        return super()._source_warnings()


def _cap(cost: Cost) -> dict[str, str | None]:
    return {"amount": cost.decimal, "unit": cost.unit}


def _remove_empty(folder: Path) -> None:
    """Remove *folder* and the folder around it, unless they have other files."""
    for path in (folder, folder.parent):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
