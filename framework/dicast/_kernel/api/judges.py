"""The judges of a pipeline file, for commands that read what they have said from its ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeVar

from ..classes import evolve, field, frozen
from ..contract.protocols import Ledger
from ..pipeline.build import load_pipeline
from ..pipeline.labels import pipeline_labels, score_label
from ..pipeline.raw_scale import raw_labels
from ..pipeline.read import read_pipeline
from ..pipeline.slots import ledger_at, ledger_slot
from ..plan.clauses import Gate
from ..plan.sections import METRICS, PASS_AT, Pipeline, Slot
from ..resume.named_runs import TOOL
from ..run.finished_run import Run
from ..run.forecast import Forecast, forecast
from ..run.plan import lookahead, pass_lines
from ..run.run import Request
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

    *name* is the pipeline's, *file* how the user wrote it; *judges* are its judges in their order; the slots in a judge's ``inside`` are those of
    the judges in it. *metrics* are its metrics, *pass_at* is the least score with which a subject passes, by label, and *fingerprints* are
    what can change a number, by section. *has_task* says that a task makes the outputs.
    """

    name: str
    file: str
    judges: tuple[Slot, ...]
    _pipeline: Pipeline = field(repr=False)

    @property
    def ledger(self) -> object:
        """The component of its ledger, which another pipeline may have, too."""
        return ledger_slot(self._pipeline).component

    @property
    def metrics(self) -> tuple[Slot, ...]:
        """The metrics, in their order."""
        return self._pipeline.metrics

    @property
    def pass_at(self) -> Mapping[str, float | None]:
        """The least score with which a subject passes, by label; ``metrics`` for all metrics together. None for a raw label without one, and for all metrics where each has to pass."""
        return pass_lines(self._pipeline)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the file: all metrics together, each judge, each criterion of the task."""
        return pipeline_labels(self._pipeline)

    @property
    def score_label(self) -> str | None:
        """The label of the run's score: the only one, or of several the first clause's of the gate; else None."""
        return score_label(self._pipeline.gate, self.labels)

    def line(self, label: str) -> float:
        """Return the least score in [0, 1] with which a subject passes *label*.

        :raises ConfigError: for a label whose values are on a scale of their own.
        """
        line = self.pass_at[label]
        if label == METRICS and line is None and label not in raw_labels(self.metrics):
            line = PASS_AT  # each metric has to pass; for the combined score alone there is no line of its own
        if line is None or label in raw_labels(self.metrics):
            raise ConfigError(
                f"{self.file}: {label} is on a scale of its own: give its metric a range, as in range: [0, 100]"
            )
        return line

    @property
    def fingerprints(self) -> Mapping[str, str]:
        """What can change a number, by section and label."""
        return self._pipeline.fingerprints

    @property
    def has_task(self) -> bool:
        """Whether a task makes the outputs."""
        return self._pipeline.task is not None

    def subjects(self, wanted: Callable[[Subject], bool]) -> list[Subject]:
        """Those subjects of the pipeline's source that are *wanted*. Nothing is judged.

        :raises RequestError: when the source cannot be opened or read, waits for what is still to happen, or there is none.
        """
        return in_loop(self._subjects(wanted))

    async def _subjects(self, wanted: Callable[[Subject], bool]) -> list[Subject]:
        slot = self._pipeline.source
        if slot is None:
            raise ConfigError(f"{self.file} has no source to read subjects from")
        async with AsyncExitStack() as stack:
            draft = RunContext(Clock().id(), self.name, self._pipeline.base)
            ledger = await open_component(ledger_slot(self._pipeline).component, draft, stack)
            context = evolve(draft, read=ledger.read, lookahead=lookahead(self._pipeline))
            source = await open_component(slot.component, context, stack)
            if is_live(source):
                raise ConfigError(
                    f"source {slot.name} waits for what is still to happen, and has nothing to read again"
                )
            return [due.subject async for due in read(source, f"source {slot.name}") if wanted(due.subject)]

    def forecast(self) -> Forecast:
        """How many subjects the pipeline's source has, and what judging all of them may cost at most. Nothing is judged.

        :raises RequestError: when the source cannot be opened or read, or there is none.
        """
        if self._pipeline.source is None:
            raise ConfigError(f"{self.file} has no source to read subjects from")
        source = self._pipeline.source.component
        return in_loop(forecast(self._pipeline, ledger_slot(self._pipeline), source))

    def judge_again(self, subjects: Sequence[Due], label: str, purpose: str) -> Run:
        """Let the judge or metric *label* judge *subjects*, which have their outputs, in a run of its own; *purpose* is a word for its name.

        Each says from which run the ledger has its trace, and the verdicts on what it is made of. The new verdicts stand in the pipeline's ledger and their costs count in its budget,
        but the run is a preview of the kind ``tool``: nothing that a later run is compared with.

        :raises RequestError: when the request is wrong; nothing was judged then, nothing spent.
        """
        whole = self._pipeline
        alone = evolve(
            whole,
            name=f"{whole.name} ({purpose})",
            task=None,
            metrics=tuple(slot for slot in whole.metrics if label in (METRICS, slot.label)),
            judges=tuple(slot for slot in whole.judges if label == slot.label),
            gate=Gate(),
            criteria=(),
            extractors=(),
            aggregates=(),
            early_stop=(),
            sinks=(),
            baseline=None,
        )
        outcome = in_loop(run_unless_disabled(alone, Request(source=SubjectList(subjects), preview=True, kind=TOOL)))
        return Run(**outcome.document, exit_code=outcome.exit_code, open_ledger=ledger_slot(alone))

    def read_ledger(self, function: Callable[[Ledger], T], path: Path | None = None) -> T:
        """Return what *function* makes of the pipeline's ledger, or of the one at *path*.

        :raises LedgerRefused: when it does not exist or is no ledger.
        """
        return with_ledger(ledger_slot(self._pipeline) if path is None else ledger_at(path), function)


def pipeline_judges(
    pipeline: Path | str | Mapping[str, object], overrides: Mapping[str, object] | Sequence[str] = ()
) -> PipelineJudges:
    """Build *pipeline*, run nothing, and return its judges.

    :raises RequestError: when the pipeline is wrong.
    """
    built = load_pipeline(as_source(pipeline), overrides, needs_source=False)
    return PipelineJudges(built.name, built.file, built.judges, built)


def pipeline_text(file: Path) -> Mapping[str, object]:
    """The sections of a pipeline file as they are written, its includes laid in; ``${VARIABLES}`` stand as they are. Nothing is built.

    :raises ConfigError: when it cannot be read.
    """
    read = read_pipeline(file)
    if read.problems:
        raise ConfigError(read.problems)
    found = read.root.plain()
    assert isinstance(found, Mapping)  # read_pipeline has looked
    return found
