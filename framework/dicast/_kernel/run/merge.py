"""Merge of shards: one run of all their subjects, with the gate, aggregates, comparisons and sinks of the pipeline file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

from ..classes import frozen
from ..contract.protocols import Ledger
from ..events import RUN_STARTED, SHARD_ROOTED, SINKS_ADDED, SUBJECT_READ
from ..leases.hold_lease import hold_lease
from ..plan.secret_mask import SecretMask
from ..plan.sections import Pipeline, Slot
from ..report.fold import Report
from ..resume.named_runs import find_run, run_kind, started_runs
from ..resume.open_runs import is_open_merge
from ..resume.resume import MAY_CHANGE, EarlierRun, known_outputs
from ..source.source import SubjectList
from ..stream.opening import ComponentStack, open_component
from ..stream.opening_context import opening
from ..stream.sinks import output
from ..stream.stream import Stream
from ..timing.event_loop import patient_collector
from ..timing.stop import Stop
from ..values import Event, Lost, ReadCounts, RunContext
from ..values.clock import Clock
from ..values.errors import ConfigError, LedgerError, LedgerRefused, Problem, RequestError
from ..values.judged import JudgedRow
from .earlier_merge import EarlierMerge
from .end import Stopped, failed
from .merged_events import MergedEvents, SubjectEvents
from .plan import decided_by, file_identity, followers, unchanged_rubrics
from .request import Request, RunOutcome
from .run import RunSteps
from .shard_set import ShardSet, find_shards

_BUILT_LATER = ("data", "filter", "shard")
"""Members of ``setup`` that do not come from the pipeline file."""


@frozen
class ShardFile:
    """Words with which the shards read their pipeline file.

    :param path: the file as the user gave it.
    :param identity: the absolute path of the file on the machine of the first shard.
    :param settings: the values of ``--set``.
    :param only: the labels of ``--only``.
    """

    path: str
    identity: str
    settings: tuple[str, ...]
    only: tuple[str, ...]


Build = Callable[[ShardFile], tuple[Pipeline, Slot]]
"""Builds the pipeline of the shards, and the ledger of the merged run."""


async def merge_ledgers(ledgers: Sequence[tuple[str, Any]], build: Build) -> tuple[RunOutcome, ShardFile]:
    """Merge the shards in *ledgers*, each a place with its configuration, to a run; return its outcome, and the words of its file.

    A merge of the same shards whose process was killed is continued.

    :raises ConfigError: with every shard that is missing, doubled, foreign or under way; nothing is recorded then.
    :raises LedgerRefused: when a ledger does not exist.
    """
    async with _opened(ledgers) as live:
        shards = find_shards(live)
        record = shards.first.started["shard"]
        words = ShardFile(record["file"], shards.first.started["file"], tuple(record["set"]), tuple(record["only"]))
        pipeline, slot = build(words)
        _refuse_changed_file(pipeline, shards)
        events = MergedEvents(shards)
        root = events.root()
    _refuse_missing_content(pipeline, events)
    return await _recorded(pipeline, slot, shards, events, root), words


@asynccontextmanager
async def _opened(ledgers: Sequence[tuple[str, Any]]) -> AsyncIterator[list[tuple[str, Ledger]]]:
    """Open *ledgers*, which must exist.

    :raises ConfigError: with every ledger that cannot be opened.
    """
    async with AsyncExitStack() as stack:
        live: list[tuple[str, Ledger]] = []
        problems: list[Problem] = []
        for place, configuration in ledgers:
            try:
                live.append((place, await stack.enter_async_context(opening(configuration, None, create=False))))
            except LedgerRefused as error:
                problems.append(Problem(str(error)))
            except RequestError as error:
                problems += error.problems
        if problems:
            raise ConfigError(problems)
        yield live


def _refuse_changed_file(pipeline: Pipeline, shards: ShardSet) -> None:
    """Refuse a pipeline file that is no longer the file of the shards.

    :raises ConfigError: naming every part that changed.
    """
    started = shards.first.started
    recorded = {key: digest for key, digest in started["setup"].items() if key not in _BUILT_LATER}
    changed = [key for key in {**recorded, **pipeline.setup} if recorded.get(key) != pipeline.setup.get(key)]
    changed += [] if started["name"] == pipeline.name else ["name"]
    if changed:
        raise ConfigError(
            Problem(
                f"{key} has changed since the shards ran; merge with the file of the shards", pipeline.file, path=key
            )
            for key in sorted(changed)
        )


def _refuse_missing_content(pipeline: Pipeline, events: MergedEvents) -> None:
    sections = {"aggregates": pipeline.aggregates, "sinks": pipeline.sinks}
    if not events.has_content and (needing := [name for name, slots in sections.items() if slots]):
        raise ConfigError(
            Problem(
                f"{name} need the content of the subjects, and a ledger of the shards has digests of some alone (content: digest, or erased)",
                pipeline.file,
                path=name,
            )
            for name in needing
        )


async def _recorded(
    pipeline: Pipeline, ledger: Slot, shards: ShardSet, events: MergedEvents, root: dict[str, Any] | None
) -> RunOutcome:
    """Record the merged run in *ledger*, and return its outcome."""
    clock, mask = Clock(), SecretMask.of(pipeline, ledger.component)
    async with AsyncExitStack() as stack:
        stack.enter_context(mask.masked_errors())
        parts = await stack.enter_async_context(ComponentStack())
        draft = RunContext(clock.id(), pipeline.name, pipeline.base, trust=pipeline.trust)
        part = parts.part("ledger")
        live: Ledger = await open_component(ledger.component, draft, part, ledger.kind)
        earlier = _earlier_merge(live, shards)
        path = getattr(live, "path", None)
        keeps_content = getattr(live, "keeps_content", True)
        context = attrs.evolve(
            draft, read=live.read, keeps_content=keeps_content, ledger_path=None if path is None else Path(path)
        )
        context = attrs.evolve(context, run_id=earlier.run_id, resumed=True) if earlier else context
        part.enter_context(hold_lease(live, context.run_id))
        if earlier:  # another process may have ended the merge in between
            _earlier_merge(live, shards)
        steps = MergeSteps(pipeline, live, clock, Stop(), context, earlier, Request(), mask)
        return await steps.merge(parts, shards, events, root)


def _earlier_merge(ledger: Ledger, shards: ShardSet) -> EarlierRun | None:
    """Return the merge of *shards* in *ledger* whose process did not end it; None without such a merge.

    :raises ConfigError: naming the runs of shards in the ledger, and each other merge of them: the spending would count twice.
    """
    advice = "name another ledger for the merged run with --ledger"
    problems = [
        Problem(f"{shard} is in the ledger of the merged run, which would count its spending twice; {advice}")
        for shard in shards.shards
        if find_run(ledger, shard.run_id) is not None
    ]
    runs, earlier = {shard.run_id for shard in shards.shards}, None
    for entry in () if problems else started_runs(ledger.read, tools=True):
        payload: Any = entry.event.payload
        merged = {shard["run_id"] for shard in payload.get("shards") or ()}
        if merged == runs and is_open_merge(ledger, payload, entry.event.run_id):
            earlier = EarlierRun(entry, finished=False)
        elif not runs.isdisjoint(merged):
            problems.append(Problem(f"run {entry.event.run_id} of the ledger is a merge of these shards; {advice}"))
    if problems:
        raise ConfigError(problems)
    return earlier


class MergeSteps(RunSteps):
    """Steps of the merge of *shards*."""

    _shards: ShardSet

    async def merge(
        self, parts: ComponentStack, shards: ShardSet, events: MergedEvents, root: dict[str, Any] | None
    ) -> RunOutcome:
        """Record the events of the shards and their *root*, and conclude the run."""
        self._shards = shards
        parts.enter_context(self._caller.ticking())
        unchanged_rubrics(self.pipeline, self.ledger)
        self._find_baselines()
        feeds, started = await self._open_sinks(parts), self._started()
        if self.pipeline.is_observed:
            from ..records.observers import RecordObservers  # few runs compute figures over records

            observing = attrs.evolve(self.context, baseline=self.baseline)
            self._observers = await RecordObservers.open(self.pipeline, observing, SubjectList(()), parts, started)
        stream = self._stream = self._open_stream(feeds)
        stopped: Stopped = shards.stopped()
        try:
            recorded = await self._start(stream, started)
            with patient_collector():
                for subject in events.subjects(stream.run_id, self.clock):
                    await self._record_subject(stream, *recorded.recognize(subject))
            await stream.replay(recorded.rest())
            stream.emit(self._lost_reservations(stream))
            stream.emit([] if recorded.has_root else self._root_events(stream, root))
            await stream.flush()
        except LedgerError as error:
            stopped = failed(stopped, error)
        return await self._end(stream, parts, stopped)

    async def _start(self, stream: Stream, started: dict[str, Any]) -> EarlierMerge:
        """Record the start of the run, or replay it; return the events that an earlier process of the merge recorded."""
        if self.earlier is None:
            stream.emit([attrs.evolve(stream.event(RUN_STARTED, started), time=self._shards.began)])
            return EarlierMerge(stream.run_id, iter(()))
        start = self.earlier.entry.event
        current = {key: started[key] for key in MAY_CHANGE}
        await stream.replay([attrs.evolve(start, payload={**start.payload, **current})])
        if added := {*started["outputs"]} - known_outputs(self.ledger, stream.run_id):
            stream.emit([stream.event(SINKS_ADDED, {"outputs": sorted(added)})])
            stream.commit()
        return EarlierMerge.read(self.ledger, self.earlier.entry)

    def _started(self) -> dict[str, Any]:
        pipeline, shards = self.pipeline, self._shards
        started = {
            key: value for key, value in shards.first.started.items() if key not in ("shard", "followers", "kind")
        }
        started["setup"] = {key: value for key, value in started["setup"].items() if key != "shard"}
        words = {name: values for name in ("set", "only") if (values := shards.first.started["shard"].get(name))}
        started |= {"file": file_identity(pipeline), **words, **decided_by(pipeline), **followers(pipeline)}
        merged = [{"shard": shard.name, "run_id": shard.run_id, "ledger": shard.place} for shard in shards.shards]
        started["kind"] = run_kind(started)
        return started | {"outputs": [output(slot, pipeline.base) for slot in pipeline.sinks], "shards": merged}

    async def _record_subject(self, stream: Stream, subject: SubjectEvents, count: int = 0) -> None:
        """Record the events of one subject. The ledger already has the first *count* events. Replaced verdicts are recorded, but not counted."""
        if not subject.superseded and not count:
            for record in subject.records:
                if isinstance(record, JudgedRow):
                    stream.emit_judged(record)
                else:
                    stream.emit((record,))
            if stream.due:
                await stream.flush()
        else:
            await stream.flush()
            if new := subject.events[count:]:
                self.ledger.append(new)
            for number, event in enumerate(subject.events):
                if number < count or event.id in subject.superseded:
                    await stream.replay([event], counted=event.id not in subject.superseded)
                else:
                    await stream.publish([event])
        if self._observers is not None and (data := subject.subject) is not None:
            current = [event for event in subject.events if event.id not in subject.superseded]
            self._observers.observe([event for event in current if event.type != SUBJECT_READ], data, complete=True)

    def _root_events(self, stream: Stream, root: dict[str, Any] | None) -> list[Event]:
        """Return the event with the *root* of the shards; nothing for None."""
        return [] if root is None else [stream.event(SHARD_ROOTED, self._mask.data(root))]

    def _lost_reservations(self, stream: Stream) -> list[Any]:
        """Return the ends of the reservations that the processes of unfinished shards left open. They count as spent."""
        stream.commit()
        lost, entries = Lost(*self.clock.stamp()), self.ledger.reservations(stream.run_id)
        return [lost(entry) for entry in entries if not entry.event.payload.get("outlives_run")]

    def _counted(self, report: Report) -> tuple[ReadCounts | None, dict[str, str]]:
        return self._shards.counts(), {}

    def _source_warnings(self) -> list[dict[str, Any]]:
        older = [
            {"kind": "older_shards", "message": f"{shard} is left out: the ledger has newer shards"}
            for shard in self._shards.older
        ]
        return [*self._shards.source_warnings(), *older]
