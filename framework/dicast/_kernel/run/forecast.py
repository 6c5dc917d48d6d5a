"""What a run may cost and what is known of it, said before anything is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

import attrs

from ..asking.call import Call
from ..asking.metering import Nested
from ..classes import frozen
from ..contract.kinds import parts
from ..contract.protocols import Ledger, Source
from ..events import PLAN_MADE
from ..pipeline.build import load_pipeline
from ..pipeline.labels import pipeline_labels, score_label
from ..pipeline.raw_scale import raw_labels
from ..pipeline.slots import ledger_slot
from ..plan.sections import METRICS, Pipeline, Slot
from ..source.source import data_digest, is_live, read
from ..stream.opening import open_component
from ..timing.event_loop import in_loop
from ..values import Cost, Event, RunContext, Subject
from ..values.clock import Clock
from ..values.errors import ConfigError, LedgerRefused
from ..values.score import zero_costs
from .plan import file_identity, lookahead, make_plan
from .run import Request, RunOutcome, execute

T = TypeVar("T")
Visit = Callable[[Subject, Mapping[str, Cost]], None]
"""Is told a subject, and what judging it may cost at most, by unit of money."""


@frozen
class Forecast:
    """How many *subjects* there are, how many of them nothing *judges*, and what judging may cost at most.

    An amount of None cannot be known. *data* is the digest of the input, where the source has one.
    """

    subjects: int
    unjudged: int
    usd: Cost
    msat: Cost
    data: str | None = None


async def forecast(pipeline: Pipeline, ledger: Slot, source: Source, visit: Visit | None = None) -> Forecast:
    """Read *source* whole, and add up what its subjects' judges say that they may cost; *visit* is told each. Nothing is judged.

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
                raise ConfigError("what is still to come cannot be planned: the source waits for what happens")
            data = (await data_digest(opened, "the source", pipeline)).get("data")
        plan = await make_plan(pipeline, context, stack)
        priced = [(call.slot, one) for call in plan.calls.values() for one in _priced(call)]
        async for due in read(opened, "the ledger" if visit is None else "the source"):
            subjects += 1
            unjudged += not plan.units_for(due.subject.kind)
            each = zero_costs()
            for slot, estimate in priced:
                if due.failure is None and slot.accepts(due.subject.kind):
                    cost = estimate(due.subject)
                    each[cost.unit] += cost
            for unit, cost in each.items():
                bill[unit] += cost
            if visit is not None:
                visit(due.subject, each)
    return Forecast(subjects, unjudged, bill["usd"], bill["msat"], data)


def _priced(call: Call) -> Iterator[Callable[[Subject], Cost]]:
    """What says how much *call* may cost; where it does not say, what says it of each judge inside it, however deep."""
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
    """A pipeline that is to be run: what its source has, what its ledger knows, and a pilot of it.

    Make it with :func:`dicast.prospect`.
    """

    _pipeline: Pipeline

    @property
    def name(self) -> str:
        """The pipeline's name."""
        return self._pipeline.name

    @property
    def label(self) -> str | None:
        """The label of the score: the first clause's of the gate, or the only one; else None."""
        return score_label(self._pipeline.gate, self.labels)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the file."""
        return pipeline_labels(self._pipeline)

    @property
    def is_raw(self) -> bool:
        """Whether the score is on a scale of its own, which no interval in [0, 1] can be planned for."""
        return self.label in raw_labels(self._pipeline.metrics)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of subjects that the score is about; empty for all."""
        slots = (*self._pipeline.metrics, *(() if self.label == METRICS else self._pipeline.judges))
        mine = [slot.on for slot in slots if self.label in (METRICS, slot.label)]
        return tuple({kind for kinds in mine for kind in kinds}) if all(mine) else ()

    @property
    def has_stages(self) -> bool:
        """Whether some subjects cost far more than others: a cascade's dear stage, or truths behind a gate."""
        slots = (*self._pipeline.metrics, *self._pipeline.judges)
        gated = {slot.tier for slot in self._pipeline.metrics} == {"proxy", "truth"}
        return gated or any(hasattr(part, "stages") for slot in slots for part in parts(slot.component))

    @property
    def concurrency(self) -> int:
        """How many subjects are judged at once."""
        return int(self._pipeline.executor.component.concurrency)

    @property
    def file(self) -> str:
        """What says that two runs are of one file, as ``run.started`` has it."""
        return file_identity(self._pipeline)

    @property
    def fingerprints(self) -> Mapping[str, str]:
        """Digests of what could change a number, by section."""
        return self._pipeline.fingerprints

    @property
    def setup(self) -> Mapping[str, str]:
        """Digests of what may not change between a run and its resume, by section."""
        return self._pipeline.setup

    def visit(self, visit: Visit) -> Forecast:
        """Read the source, which *visit* is told each subject of. Nothing is judged.

        :raises RequestError: when the source cannot be read, or goes on.
        """
        assert self._pipeline.source is not None  # such a pipeline is not built
        return in_loop(forecast(self._pipeline, ledger_slot(self._pipeline), self._pipeline.source.component, visit))

    def pilot(self, subjects: int) -> RunOutcome:
        """Judge the first so many *subjects*, in a run that can be taken up."""
        return in_loop(
            execute(self._pipeline, ledger_slot(self._pipeline), Request(pause_after=subjects, signals=True))
        )

    def read(self, function: Callable[[Ledger], T], *, create: bool = False) -> T | None:
        """What *function* makes of the pipeline's ledger; None where there is none yet, unless it is to *create* it."""

        async def read() -> T:
            async with ledger_slot(self._pipeline).component.open(None, create=create) as ledger:
                return function(ledger)

        try:
            return in_loop(read())
        except LedgerRefused:
            return None

    def record(self, plan: Mapping[str, object], data: str | None) -> None:
        """Keep *plan* in the ledger, where the run that it is about finds it at its end."""
        id_, time = Clock().stamp()
        setup = {**self.setup, **({} if data is None else {"data": data})}
        event = Event(id_, PLAN_MADE, time, "", {"file": self.file, "setup": setup, "plan": plan})
        self.read(lambda ledger: ledger.append([event]), create=True)


def prospect(pipeline: Path, overrides: Sequence[str] = ()) -> Prospect:
    """The *pipeline* in a file as a run that is to come: what its source has, what its ledger knows, and a pilot of it.

    :param overrides: texts as after ``--set``.
    :raises RequestError: when the request is wrong.
    """
    return Prospect(load_pipeline(pipeline, overrides))
