"""Judges of a pipeline file, for commands that read their verdicts from its ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeVar

from ..classes import evolve, field, frozen
from ..contract.protocols import Ledger
from ..pipeline.build import load_pipeline
from ..pipeline.raw_scale import raw_labels
from ..pipeline.read import read_pipeline
from ..pipeline.slots import ledger_at, ledger_slot
from ..plan.clauses import Gate
from ..plan.labels import pipeline_labels, score_label
from ..plan.sections import METRICS, PASS_AT, Pipeline, Slot
from ..resume.named_runs import TOOL
from ..run.finished_run import Run
from ..run.forecast import Forecast, forecast
from ..run.plan import lookahead, pass_lines
from ..run.request import Request
from ..source.source import SubjectList, is_live, read
from ..stream.opening import open_component
from ..timing.event_loop import in_loop
from ..values import Due, RunContext, Subject
from ..values.clock import Clock
from ..values.errors import ConfigError
from .runs import as_source, run_unless_disabled, with_ledger

__all__ = ["PipelineJudges", "Slot", "pipeline_judges", "pipeline_text"]

T = TypeVar("T")


@frozen
class PipelineJudges:
    """The judges of a pipeline, and its ledger.

    *name* is the pipeline's name, *file* the file as the user wrote it. *judges* are its judges in their order; a judge's ``inside`` has the
    slots of its nested judges. *metrics* are its metrics. *pass_at* is the smallest passing score, by label. *fingerprints* are the digests
    of everything that can change a score, by section. *has_task* is True if a task makes the outputs.
    """

    name: str
    file: str
    judges: tuple[Slot, ...]
    _pipeline: Pipeline = field(repr=False)

    @property
    def ledger(self) -> object:
        """The component of the ledger; other pipelines may use the same ledger."""
        return ledger_slot(self._pipeline).component

    @property
    def metrics(self) -> tuple[Slot, ...]:
        """The metrics, in their order."""
        return self._pipeline.metrics

    @property
    def pass_at(self) -> Mapping[str, float | None]:
        """The smallest passing score, by label; ``metrics`` for all metrics together. None for a raw label without a line, and for all metrics if each has to pass."""
        return pass_lines(self._pipeline)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the file: all metrics together, each judge, each criterion of the task."""
        return pipeline_labels(self._pipeline)

    @property
    def score_label(self) -> str | None:
        """The label of the run's score: the only label, or among several the label of the gate's first clause; else None."""
        return score_label(self._pipeline.gate, self.labels)

    def line(self, label: str) -> float:
        """Return the smallest score in [0, 1] with which a subject passes *label*.

        :raises ConfigError: for a label with a raw scale.
        """
        line = self.pass_at[label]
        if label == METRICS and line is None and label not in raw_labels(self.metrics):
            line = PASS_AT  # each metric has to pass, so the combined score has no line
        if line is None or label in raw_labels(self.metrics):
            raise ConfigError(f"{self.file}: {label} has a raw scale; give its metric a range, as in range: [0, 100]")
        return line

    @property
    def fingerprints(self) -> Mapping[str, str]:
        """Digests of everything that can change a score, by section and label."""
        return self._pipeline.fingerprints

    @property
    def has_task(self) -> bool:
        """True if a task makes the outputs."""
        return self._pipeline.task is not None

    def subjects(self, is_wanted: Callable[[Subject], bool]) -> list[Subject]:
        """Return the subjects of the pipeline's source for which *is_wanted* returns True. Nothing is judged.

        :raises RequestError: when there is no source, it cannot be opened or read, or it is live.
        """
        return in_loop(self._subjects(is_wanted))

    async def _subjects(self, is_wanted: Callable[[Subject], bool]) -> list[Subject]:
        slot = self._pipeline.source
        if slot is None:
            raise ConfigError(f"{self.file} has no source to read subjects from; add the section source")
        async with AsyncExitStack() as stack:
            draft = RunContext(Clock().id(), self.name, self._pipeline.base)
            ledger = await open_component(ledger_slot(self._pipeline).component, draft, stack)
            context = evolve(draft, read=ledger.read, lookahead=lookahead(self._pipeline))
            source = await open_component(slot.component, context, stack)
            if is_live(source):
                raise ConfigError(
                    f"source {slot.name} is a live source and cannot be read again; use a source that ends"
                )
            return [due.subject async for due in read(source, f"source {slot.name}") if is_wanted(due.subject)]

    def forecast(self) -> Forecast:
        """Return the number of subjects of the pipeline's source, and the largest cost of judging all of them. Nothing is judged.

        :raises RequestError: when the source cannot be opened or read, or there is none.
        """
        if self._pipeline.source is None:
            raise ConfigError(f"{self.file} has no source to read subjects from; add the section source")
        source = self._pipeline.source.component
        return in_loop(forecast(self._pipeline, ledger_slot(self._pipeline), source))

    def judge_again(self, subjects: Sequence[Due], label: str, purpose: str) -> Run:
        """Judge *subjects*, which have their outputs, with the judge or metric *label* in a separate run, and return that run.

        The name of the run is the pipeline's name with *purpose* in brackets. A subject's ``from_run`` names the run whose ledger rows
        have its trace and child verdicts. The new verdicts are in the pipeline's ledger and
        their costs count in its budget. The run is a preview of the kind ``tool``, so later runs are not compared with it.

        :raises RequestError: when the request is invalid; nothing was judged or spent then.
        """
        full = self._pipeline
        reduced = evolve(
            full,
            name=f"{full.name} ({purpose})",
            task=None,
            metrics=tuple(slot for slot in full.metrics if label in (METRICS, slot.label)),
            judges=tuple(slot for slot in full.judges if label == slot.label),
            gate=Gate(),
            criteria=(),
            extractors=(),
            aggregates=(),
            early_stop=(),
            sinks=(),
            baseline=None,
        )
        outcome = in_loop(run_unless_disabled(reduced, Request(source=SubjectList(subjects), preview=True, kind=TOOL)))
        return Run(**outcome.document, exit_code=outcome.exit_code, open_ledger=ledger_slot(reduced))

    def read_ledger(self, function: Callable[[Ledger], T], path: Path | str | None = None) -> T:
        """Return the result of *function* on the pipeline's ledger, or on the ledger at *path*.

        :raises LedgerRefused: when it does not exist or is no ledger.
        """
        return with_ledger(ledger_slot(self._pipeline) if path is None else ledger_at(path), function)


def pipeline_judges(
    pipeline: Path | str | Mapping[str, object], overrides: Mapping[str, object] | Sequence[str] = ()
) -> PipelineJudges:
    """Build *pipeline*, run nothing, and return its judges.

    :raises RequestError: when the pipeline is invalid.
    """
    built = load_pipeline(as_source(pipeline), overrides, needs_source=False)
    return PipelineJudges(built.name, built.file, built.judges, built)


def pipeline_text(file: Path) -> Mapping[str, object]:
    """Return the sections of a pipeline file as written, with its includes merged and ``${VARIABLES}`` unchanged. Nothing is built.

    :raises ConfigError: when it cannot be read.
    """
    read = read_pipeline(file)
    if read.problems:
        raise ConfigError(read.problems)
    sections = read.root.plain()
    assert isinstance(sections, Mapping)  # checked by read_pipeline
    return sections
