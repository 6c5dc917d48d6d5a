"""Pipelines that run in a test, with subjects and components from memory and without files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import attrs

from .._kernel.api.runs import run_unless_disabled, with_ledger
from .._kernel.contract.protocols import Ledger, Source
from .._kernel.contract.registry import Registry
from .._kernel.pipeline.build import load_pipeline
from .._kernel.pipeline.builder import Builder
from .._kernel.pipeline.faults import Invalid, visible_steps
from .._kernel.pipeline.rubrics import load_rubric
from .._kernel.pipeline.slots import ledger_slot
from .._kernel.pipeline.types import option_path
from .._kernel.resume.queries import verdict
from .._kernel.run.request import Request
from .._kernel.source.source import SubjectList, is_live
from .._kernel.timing.event_loop import in_loop
from .._kernel.values import (
    Cost,
    Due,
    Event,
    Failure,
    Head,
    Judgment,
    Query,
    Rubric,
    RunContext,
    Score,
    Subject,
    Verdict,
)
from .._kernel.values.errors import ConfigError, Problem
from .._kernel.values.judged import JudgedRow, Records, events_of
from .fakes import FakeJudge, FakeMetric, MemorySink
from .ledger import Live, MemoryLedger
from .subjects import GOLDEN

LEDGER = "ledger-of-the-test"


@attrs.frozen
class Finished:
    """Result of a run.

    *document* is the JSON that ``dicast run --json`` prints and *exit_code* its exit code. *verdicts* and *events* are in the
    order of the run.
    """

    document: Mapping[str, Any]
    exit_code: int
    verdicts: tuple[Verdict, ...]
    events: tuple[Event, ...]

    def of(self, type_: str) -> list[Event]:
        """Return the events of one type, in their order."""
        return [event for event in self.events if event.type == type_]


def run_pipeline(
    text: str,
    *,
    subjects: Iterable[Subject | Due] | None = None,
    source: Source | None = None,
    components: Mapping[str, object] | None = None,
) -> Finished:
    """Run a pipeline and return its result. Nothing is written to disk, except by the pipeline's own sinks and ledger.

    :param text: the pipeline as YAML. Relative paths in it are relative to the current directory; without a ``ledger``
        section the ledger is in memory.
    :param subjects: the subjects to judge; by default the subjects of the pipeline's source, or :data:`GOLDEN` if it has none.
    :param source: a source in place of *subjects*; a live source (``live = True``) resumes an unfinished run.
    :param components: components that are built already, by the bare names that *text* uses for them.
    :raises RequestError: if the request is wrong.
    """
    ready = {LEDGER: MemoryLedger(), **(components or {})}
    pipeline = load_pipeline(text, needs_source=False, ready=ready)
    if pipeline.ledger is None:
        pipeline = load_pipeline(text, {"ledger": LEDGER}, needs_source=False, ready=ready)
    if source is None and (subjects is not None or pipeline.source is None):
        source = SubjectList(GOLDEN if subjects is None else subjects)
    request = Request(source=source, live=source is not None and is_live(source))
    outcome = in_loop(run_unless_disabled(pipeline, request))
    run_id = outcome.document["run_id"]
    events = () if run_id is None else with_ledger(ledger_slot(pipeline), lambda live: _events(live, run_id))
    verdicts = tuple(verdict(event) for event in events if event.type == "eval.completed")
    return Finished(outcome.document, outcome.exit_code, verdicts, events)


def _events(ledger: Ledger, run_id: str) -> tuple[Event, ...]:
    return tuple(entry.event for entry in ledger.read(Query(run_id=run_id)))


@attrs.frozen
class Bench:
    """Builder of components as in a pipeline file, with relative paths below *folder* and *ready* components by name."""

    folder: Path
    ready: Mapping[str, object] = attrs.field(factory=dict)
    registry: Registry = attrs.field(factory=Registry)

    def builder(self) -> Builder:
        """Return a new builder, which builds and names components independently of other builders."""
        texts = {Rubric: lambda text, _: load_rubric(text, self.folder)}
        return Builder(self.registry, {}, lambda _: self.folder, texts, self.ready)

    def build(self, kind: str, name: str, options: Mapping[str, object]) -> Any:
        """Return the component *name* with *options*.

        :raises ConfigError: with all faults of the options.
        """
        try:
            return self.builder().component({name: options}, (kind,)).live
        except Invalid as invalid:
            raise ConfigError(
                Problem(fault.message, path=option_path(visible_steps(fault.path)), value=fault.value, hint=fault.hint)
                for fault in invalid.faults
            ) from invalid


@cache
def typical_events_once() -> tuple[Event, ...]:
    """Return :func:`typical_events` of one run, the same each time."""
    return typical_events()


def typical_events() -> tuple[Event, ...]:
    """Return the events of a run with a metric, a judge, a failure and a price, over :data:`GOLDEN`."""
    text = "name: typical\nmetrics: [cheap]\njudges: [expensive]\nsinks: [recorder]\n"
    refused = Failure("refused", "the model would not say")
    scores = [refused if number == 3 else Score(number / len(GOLDEN)) for number, _ in enumerate(GOLDEN)]
    judge = FakeJudge(Judgment(0.75, 0.8, "llm", "qwen3-8b", Cost("0.0001")), cost=Cost("0.0002"))
    sink = MemorySink()
    run_pipeline(text, components={"cheap": FakeMetric(scores), "expensive": judge, "recorder": sink})
    return tuple(sink.events)


@attrs.frozen
class JudgedLedger:
    """A ledger in memory that takes judged subjects, and keeps the *records* that it gets."""

    records: list[Event | JudgedRow] = attrs.field(init=False, factory=list, eq=False, repr=False)
    _rows: MemoryLedger = attrs.field(init=False, factory=MemoryLedger, eq=False, repr=False)

    @asynccontextmanager
    async def open(self, run: RunContext | None = None, create: bool = True) -> AsyncIterator[Live]:
        """Yield a live ledger with ``append_judged``."""
        async with self._rows.open(run, create) as live:
            yield _JudgedLive(live, self.records)


class _JudgedLive(Live):
    def __init__(self, live: Live, records: list[Event | JudgedRow]) -> None:
        super().__init__(live._book)  # noqa: SLF001  # the same rows
        self._records = records

    def append_judged(self, records: Records) -> Head:
        self._records += records
        return self.append(events_of(records))


def typical_records() -> tuple[Event | JudgedRow, ...]:
    """Return records of a run with two metrics over rows: judged subjects, some with notes, and the events of a failed row."""
    score, noted = Score(0.5), Score(1.0, 0.5, details="short", signals={"words": 2})
    first, ledger = FakeMetric([score, noted, Failure("refused", "no text")] * 2), JudgedLedger()
    rows = [Subject("row", f"r{number}", output=f"text {number % 4}") for number in range(6)]
    text = f"name: typical\nmetrics: [first, second]\nledger: {LEDGER}\n"
    run_pipeline(text, subjects=rows, components={"first": first, "second": FakeMetric(), LEDGER: ledger})
    return tuple(ledger.records)
