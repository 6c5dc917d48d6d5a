"""Running a pipeline from Python; the command line calls the same."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ..classes import evolve
from ..values import Due, Results, Rubric, Subject
from ..values.errors import ConfigError
from ..values.paths import descriptor

if TYPE_CHECKING:
    from ..contract.protocols import Ledger, Source, Task
    from ..pipeline.read import PipelineFile
    from ..plan.sections import Pipeline, Slot
    from ..run.finished_run import Run
    from ..run.forecast import Forecast
    from ..run.run import Request, RunOutcome

T = TypeVar("T")
RunKind = Literal["pipeline", "suite", "watch", "evaluate", "tool"]


def run(
    pipeline: Path | str | Mapping[str, object],
    *,
    overrides: Mapping[str, object] | Sequence[str] = (),
    subjects: Iterable[Subject | Due] | None = None,
    task: Callable[..., Any] | Task | None = None,
    kind: RunKind | None = None,
) -> Run:
    """Run a pipeline and wait for it.

    :param pipeline: a file, YAML text, or a mapping, in which a component made in Python may stand for its name; also a suite.
    :param overrides: dotted paths with the values to use instead (``{"scoring.threshold": 0.7}``), or texts as after ``--set``.
    :param subjects: what to judge instead of what the pipeline's source yields; a :class:`~dicast.Due` may have a function for its verdicts.
    :param task: what makes the outputs, instead of the pipeline's task: a function of the row (see :class:`~dicast.toolkit.function_task.FunctionTask`), or a Task.
    :param kind: what the run is for, as it is recorded: ``evaluate``, or ``tool``, which ``last`` passes over; by default what the pipeline is.
    :raises RequestError: when the request is wrong; nothing was judged then, nothing spent.
    :raises LedgerRefused: when the ledger cannot be used.
    """
    from ..timing.event_loop import in_loop  # asyncio takes 20 ms to import

    return in_loop(arun(pipeline, overrides=overrides, subjects=subjects, task=task, kind=kind))


async def arun(
    pipeline: Path | str | Mapping[str, object],
    *,
    overrides: Mapping[str, object] | Sequence[str] = (),
    subjects: Iterable[Subject | Due] | None = None,
    task: Callable[..., Any] | Task | None = None,
    kind: RunKind | None = None,
) -> Run:
    """The same as :func:`run`, in the event loop that is running."""
    from ..pipeline.build import build_pipeline  # PyYAML and cattrs take 40 ms to import
    from ..pipeline.read import read_pipeline
    from ..pipeline.slots import ledger_slot
    from ..pipeline.yaml_nodes import is_data
    from ..run.finished_run import Run  # which the command line does without
    from ..run.run import Request
    from ..source.source import SubjectList

    source, ready = as_source(pipeline), dict[str, object]()
    if switched_off():
        outcome = not_run(source)
        return Run(**outcome.document, exit_code=outcome.exit_code)
    if not is_data(source):
        from .components import plain

        source = plain(source, ready)
    read = read_pipeline(source, overrides)
    if task is not None:
        from .components import with_task

        read = with_task(read, task, ready)
    if read.experiments:
        return await _run_suite(read, subjects, kind)
    built = build_pipeline(read, needs_source=subjects is None, ready=ready)
    built = evolve(built, ledger=ledger_slot(built))
    source_ = None if subjects is None else SubjectList(subjects)
    outcome = await run_unless_disabled(built, Request(source=source_, kind=kind))
    return Run(**outcome.document, exit_code=outcome.exit_code, open_ledger=built.ledger)


async def _run_suite(read: PipelineFile, subjects: Iterable[Subject | Due] | None, kind: RunKind | None) -> Run:
    from ..pipeline.slots import ledger_slot
    from ..run.finished_run import Run
    from ..run.run import Request
    from ..run.suite import in_sum, run_suite

    if subjects is not None:
        raise ConfigError("a suite's experiments read sources of their own; leave subjects out, or run one pipeline")
    ledgers: dict[str, Slot] = {}

    async def run_one(pipeline: Pipeline, request: Request) -> RunOutcome:
        ledger = ledgers[str(pipeline.experiment)] = ledger_slot(pipeline)
        return await run_unless_disabled(evolve(pipeline, ledger=ledger), request)

    suite = await run_suite(read, Request(kind=kind), run_one)
    runs = {
        name: Run(**outcome.document, exit_code=outcome.exit_code, open_ledger=ledgers[name])
        for name, outcome in suite.outcomes.items()
    }
    return Run(**in_sum(suite), exit_code=suite.exit_code, experiments=runs)


def forecast(pipeline: Path | str | Mapping[str, object], source: Source) -> Forecast:
    """How many subjects *source* has, and what judging all of them as *pipeline* says may cost at most. Nothing is judged.

    :raises RequestError: when the request is wrong.
    """
    from ..pipeline.build import load_pipeline
    from ..pipeline.slots import ledger_slot
    from ..run.forecast import forecast
    from ..timing.event_loop import in_loop

    built = load_pipeline(as_source(pipeline), needs_source=False)
    return in_loop(forecast(built, ledger_slot(built), source))


def rubric(name: str) -> Rubric:
    """The rubric *name*, an installed one's id or a file's path: for a component whose rubric depends on what it judges.

    :raises ConfigError: when there is none.
    :raises PluginError: when the distribution that has it is broken, or another one has the same id.
    """
    from ..pipeline.rubrics import load_rubric

    return load_rubric(name, Path())


async def run_unless_disabled(pipeline: Pipeline, request: Request) -> RunOutcome:
    """Run *pipeline*, unless it is ``disabled``."""
    from ..pipeline.slots import ledger_slot
    from ..report.document import disabled_document
    from ..run.run import RunOutcome, execute

    if pipeline.disabled:
        return RunOutcome(disabled_document(pipeline.name), 0)
    return await execute(pipeline, ledger_slot(pipeline), request)


def switched_off() -> bool:
    """Whether ``DICAST_DISABLED`` says that nothing is to be judged."""
    return os.environ.get("DICAST_DISABLED", "") not in ("", "0")


def not_run(pipeline: Path | str | Mapping[str, object]) -> RunOutcome:
    """What a run comes to where it is :func:`switched_off`: nothing is read, not even the pipeline's file."""
    from ..report.document import disabled_document
    from ..run.run import RunOutcome

    return RunOutcome(disabled_document(pipeline.stem if isinstance(pipeline, Path) else "pipeline"), 0)


def as_source(pipeline: Path | str | Mapping[str, object]) -> Path | str | Mapping[str, object]:
    """Tell a file's name from YAML text: one line that ends like a file, or names one, is a file."""
    if isinstance(pipeline, str) and "\n" not in pipeline:
        path = Path(pipeline)
        if path.suffix in (".yaml", ".yml") or descriptor(path) is not None or path.is_file():
            return path
    return pipeline


def read_ledger(path: Path | None, function: Callable[[Ledger], T]) -> T:
    """Return what *function* makes of the ledger at *path*, by default of the one at ``$DICAST_LEDGER`` or ``.dicast/ledger.db``.

    :raises LedgerRefused: when it does not exist or is no ledger.
    """
    from ..pipeline.default_ledger import reading, sqlite_ledger
    from ..timing.at_once import at_once

    return at_once(reading(sqlite_ledger(path)[1], function))


def results(ledger: Ledger | None, run: str) -> Results:
    """The records of a finished run: its id, the name of its pipeline (the newest of them), ``last``, or a file of ``jsonl/rows``.

    Without a *ledger* it can only be a file.

    :raises ConfigError: when there is none, or it has not ended in order.
    :raises DataError: when the file is not one of records.
    """
    from ..records.baseline import find_results, of_file  # the runner takes 40 ms to import

    found = of_file(Path(run)) if ledger is None else find_results(ledger, run, Path())
    if found is None:
        raise ConfigError("no run in this ledger has ended in order")
    return found


def with_ledger(slot: Slot, function: Callable[[Ledger], T]) -> T:
    """The same as :func:`read_ledger`, for the ledger of *slot*."""
    from ..pipeline.default_ledger import reading
    from ..timing.event_loop import in_loop

    return in_loop(reading(slot.component, function))
