"""Forecast of a run: its largest cost and its known properties, before anything is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import attrs

from ..asking.call import Call
from ..asking.metering import Nested
from ..classes import frozen
from ..contract.kinds import parts
from ..contract.protocols import Ledger, Source, splits_runs
from ..events import PLAN_MADE
from ..pipeline.build import load_pipeline
from ..pipeline.ledger_path import FILE
from ..pipeline.raw_scale import raw_labels
from ..pipeline.slots import ledger_at, ledger_slot
from ..plan.labels import pipeline_labels, score_label
from ..plan.sections import METRICS, Pipeline, Slot
from ..resume.open_runs import RunCommand
from ..source.columns import checked_data
from ..source.source import is_live, read
from ..stream.opening import open_component
from ..stream.opening_context import opening
from ..timing.event_loop import in_loop
from ..values import Cost, Event, Query, RunContext, Subject
from ..values.clock import Clock
from ..values.errors import ConfigError, LedgerRefused
from ..values.score import zero_costs
from .execute import execute
from .plan import file_identity, lookahead, make_plan
from .request import Request, RunOutcome

_BATCH = 1_000
"""Events that are copied together."""

_LIMITS = ("requests_per_minute", "tokens_per_minute")
"""Options of chat models that limit the calls of a run."""

T = TypeVar("T")
Visit = Callable[[Subject, Mapping[str, Cost]], None]
"""Function of a subject and the largest cost of judging it, by unit of money."""


@frozen
class Forecast:
    """The number of *subjects*, the number of subjects that no component judges, and the largest cost of judging.

    An amount of None is unknown. *data* is the digest of the input, if the source has one.
    """

    subjects: int
    unjudged: int
    usd: Cost
    msat: Cost
    data: str | None = None


async def forecast(pipeline: Pipeline, ledger: Slot, source: Source, visit: Visit | None = None) -> Forecast:
    """Read *source* completely, and add up the cost estimates for its subjects. Nothing is judged.

    :param visit: is called with each subject and its cost.
    :raises RequestError: when the source or a component cannot be opened or read.
    """
    bill, subjects, unjudged = zero_costs(), 0, 0
    async with AsyncExitStack() as stack:
        draft = RunContext(Clock().id(), pipeline.name, pipeline.base, trust=pipeline.trust)
        live = await open_component(ledger.component, draft, stack)
        context = attrs.evolve(draft, read=live.read, lookahead=lookahead(pipeline))
        opened = await open_component(source, context, stack)
        data = None
        if visit is not None:
            if is_live(opened):
                raise ConfigError(
                    "a live source cannot be planned, because its future subjects are unknown; plan a source that ends"
                )
            data = (await checked_data(opened, "the source", pipeline)).get("data")
        plan = await make_plan(pipeline, context, stack)
        priced = [(call.slot, estimate_) for call in plan.calls.values() for estimate_ in _priced(call)]
        async for due in read(opened, "the ledger" if visit is None else "the source"):
            subjects += 1
            unjudged += not plan.units_for(due.subject.kind)
            costs = zero_costs()
            for slot, estimate in priced:
                if due.failure is None and slot.accepts(due.subject.kind):
                    cost = estimate(due.subject)
                    costs[cost.unit] += cost
            for unit, cost in costs.items():
                bill[unit] += cost
            if visit is not None:
                visit(due.subject, costs)
    return Forecast(subjects, unjudged, bill["usd"], bill["msat"], data)


def _priced(call: Call) -> Iterator[Callable[[Subject], Cost]]:
    """Yield the function that estimates the cost of *call*: the component's ``estimate``, else the ``estimate`` of each nested judge at any depth."""
    if call.estimate is not None:
        yield call.estimate
        return
    owner: Any = getattr(call.function, "__self__", None)
    for field in attrs.fields(type(owner)) if attrs.has(type(owner)) else ():
        for part in parts(getattr(owner, field.name)):
            if isinstance(part, Nested) and part.call.estimate is not None:
                yield part.call.estimate


@frozen
class Prospect:
    """A pipeline before its run: the content of its source, the history in its ledger, and a pilot of it.

    Make it with :func:`dicast.prospect`.
    """

    _pipeline: Pipeline
    _settings: Sequence[str] = ()

    @property
    def name(self) -> str:
        """The pipeline's name."""
        return self._pipeline.name

    @property
    def notes(self) -> tuple[str, ...]:
        """The rate limits that are divided by the workers of an executor that splits runs, a sentence each."""
        pipeline = self._pipeline
        if not splits_runs(pipeline.executor.component):
            return ()
        return tuple(
            f"{slot.label}: {name} is {limit:g} for all workers of {pipeline.executor.name} together; each has an equal share"
            for slot in (*pipeline.metrics, *pipeline.judges)
            for part in parts(slot.component)
            for name in _LIMITS
            if isinstance(limit := getattr(part, name, None), int | float)
        )

    @property
    def label(self) -> str | None:
        """The label of the score: the label of the gate's first clause, or the only label; else None."""
        return score_label(self._pipeline.gate, self.labels)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the file."""
        return pipeline_labels(self._pipeline)

    @property
    def is_raw(self) -> bool:
        """True if the score has a raw scale, for which no interval in [0, 1] can be planned."""
        return self.label in raw_labels(self._pipeline.metrics)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of subjects that have the score; empty for all."""
        slots = (*self._pipeline.metrics, *(() if self.label == METRICS else self._pipeline.judges))
        slot_kinds = [slot.on for slot in slots if self.label in (METRICS, slot.label)]
        return tuple({kind for kinds in slot_kinds for kind in kinds}) if all(slot_kinds) else ()

    @property
    def has_stages(self) -> bool:
        """True if some subjects cost far more than others, because of a cascade's expensive stage or of truths behind a gate."""
        slots = (*self._pipeline.metrics, *self._pipeline.judges)
        gated = {slot.tier for slot in self._pipeline.metrics} == {"proxy", "truth"}
        return gated or any(hasattr(part, "stages") for slot in slots for part in parts(slot.component))

    @property
    def concurrency(self) -> int:
        """The number of subjects judged at once."""
        return int(self._pipeline.executor.component.concurrency)

    @property
    def file(self) -> str:
        """The identity of the pipeline file, as ``run.started`` records it; equal for two runs of one file."""
        return file_identity(self._pipeline)

    @property
    def fingerprints(self) -> Mapping[str, str]:
        """Digests of everything that can change a score, by section."""
        return self._pipeline.fingerprints

    @property
    def setup(self) -> Mapping[str, str]:
        """Digests of everything that must stay the same between a run and its resume, by section."""
        return self._pipeline.setup

    def visit(self, visit: Visit) -> Forecast:
        """Read the source and call *visit* with each subject and its cost. Nothing is judged.

        :raises RequestError: when the source cannot be read, or is live.
        """
        assert self._pipeline.source is not None  # a pipeline without a source is not built
        return in_loop(forecast(self._pipeline, ledger_slot(self._pipeline), self._pipeline.source.component, visit))

    def pilot(self, subjects: int) -> RunOutcome:
        """Judge the first *subjects* subjects, in a run that can be resumed."""
        command = RunCommand(self._pipeline.file, self._settings)
        request = Request(pause_after=subjects, signals=True, command=command)
        return in_loop(execute(self._pipeline, ledger_slot(self._pipeline), request))

    def trial(self, subjects: int, path: Path) -> RunOutcome:
        """Judge the first *subjects* subjects without sinks, aggregates and comparisons. A new SQLite file at *path* records the run."""
        pipeline = attrs.evolve(self._pipeline, aggregates=(), early_stop=(), baseline=None, sinks=())
        return in_loop(execute(pipeline, self._ledger_at(path), Request(limit=subjects, preview=True)))

    def copy(self, run_id: str, path: Path) -> None:
        """Copy the events of the run *run_id* to a new SQLite file at *path*."""

        async def copy() -> None:
            async with (
                opening(ledger_slot(self._pipeline).component, None) as ledger,
                opening(self._ledger_at(path).component, None, create=True) as new,
            ):
                events = (entry.event for entry in ledger.read(Query(run_id=run_id)))
                while batch := list(islice(events, _BATCH)):
                    new.append(batch)

        in_loop(copy())

    def _ledger_at(self, path: Path) -> Slot:
        """Return the ledger at *path*, with the options of the pipeline's ledger if that is a file, too."""
        slot = self._pipeline.ledger
        if slot is None or slot.name != FILE:
            return ledger_at(path)
        return attrs.evolve(slot, component=attrs.evolve(slot.component, path=path))

    def read(self, function: Callable[[Ledger], T], *, create: bool = False) -> T | None:
        """Return the result of *function* on the pipeline's ledger; None if there is no ledger yet, unless *create*."""

        async def read() -> T:
            async with opening(ledger_slot(self._pipeline).component, None, create=create) as ledger:
                return function(ledger)

        try:
            return in_loop(read())
        except LedgerRefused:
            return None

    def record(self, plan: Mapping[str, object], data: str | None) -> None:
        """Record *plan* in the ledger. The run that it describes reads it at its end."""
        id_, time = Clock().stamp()
        setup = {**self.setup, **({} if data is None else {"data": data})}
        event = Event(id_, PLAN_MADE, time, "", {"file": self.file, "setup": setup, "plan": plan})
        self.read(lambda ledger: ledger.append([event]), create=True)


def prospect(pipeline: Path, overrides: Sequence[str] = ()) -> Prospect:
    """Return the *pipeline* in a file as a run to plan: the content of its source, the history in its ledger, and a pilot of it.

    :param overrides: texts as after ``--set``.
    :raises RequestError: when the request is invalid.
    """
    return Prospect(load_pipeline(pipeline, overrides), overrides)
