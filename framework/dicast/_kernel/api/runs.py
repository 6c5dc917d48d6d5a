"""Functions that run a pipeline from Python; the command line calls them too."""

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
    from ..run.request import Request, RunOutcome

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

    :param pipeline: a file, YAML text, or a mapping, which may contain Python components in place of their names; also a suite.
    :param overrides: dotted paths with the values to use instead (``{"scoring.threshold": 0.7}``), or texts as after ``--set``.
    :param subjects: subjects to judge instead of the pipeline's source; a :class:`~dicast.Due` may have a function for its verdicts.
    :param task: makes the outputs instead of the pipeline's task: a function of the row (see :class:`~dicast.toolkit.function_task.FunctionTask`), or a Task.
    :param kind: the recorded kind of the run, such as ``evaluate``, or ``tool``, which ``last`` skips; by default the pipeline's kind.
    :raises RequestError: when the request is invalid; nothing was judged or spent then.
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
    """Run a pipeline as :func:`run` does, in the running event loop."""
    from ..pipeline.build import build_pipeline  # PyYAML takes 10 ms to import
    from ..pipeline.read import read_pipeline
    from ..pipeline.slots import ledger_slot
    from ..pipeline.yaml_nodes import is_data
    from ..run.finished_run import Run  # the command line does not need it
    from ..run.request import Request
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
    from ..run.request import Request
    from ..run.suite import run_suite, suite_document

    if subjects is not None:
        raise ConfigError("the experiments of a suite read their own sources; remove subjects, or run one pipeline")
    ledgers: dict[str, Slot] = {}

    async def run_one(pipeline: Pipeline, request: Request) -> RunOutcome:
        ledger = ledgers[str(pipeline.experiment)] = ledger_slot(pipeline)
        return await run_unless_disabled(evolve(pipeline, ledger=ledger), request)

    suite = await run_suite(read, Request(kind=kind), run_one)
    runs = {
        name: Run(**outcome.document, exit_code=outcome.exit_code, open_ledger=ledgers[name])
        for name, outcome in suite.outcomes.items()
    }
    return Run(**suite_document(suite), exit_code=suite.exit_code, experiments=runs)


def forecast(pipeline: Path | str | Mapping[str, object], source: Source) -> Forecast:
    """Return the number of subjects of *source*, and the largest cost of judging all of them by *pipeline*. Nothing is judged.

    :raises RequestError: when the request is invalid.
    """
    from ..pipeline.build import load_pipeline
    from ..pipeline.slots import ledger_slot
    from ..run.forecast import forecast
    from ..timing.event_loop import in_loop

    built = load_pipeline(as_source(pipeline), needs_source=False)
    return in_loop(forecast(built, ledger_slot(built), source))


def rubric(name: str) -> Rubric:
    """Return the rubric *name*, the id of an installed rubric or the path of a file, for a component that chooses its rubric by subject.

    :raises ConfigError: when there is none.
    :raises PluginError: when its distribution is broken, or another distribution has the same id.
    """
    from ..pipeline.rubrics import load_rubric

    return load_rubric(name, Path())


async def run_unless_disabled(pipeline: Pipeline, request: Request) -> RunOutcome:
    """Run *pipeline*, unless it is ``disabled``."""
    from ..pipeline.slots import ledger_slot
    from ..report.document import disabled_document
    from ..run.execute import execute
    from ..run.request import RunOutcome

    if pipeline.disabled:
        return RunOutcome(disabled_document(pipeline.name), 0)
    return await execute(pipeline, ledger_slot(pipeline), request)


def switched_off() -> bool:
    """Return True if ``DICAST_DISABLED`` is set, so that nothing is judged."""
    return os.environ.get("DICAST_DISABLED", "") not in ("", "0")


def not_run(pipeline: Path | str | Mapping[str, object]) -> RunOutcome:
    """Return the outcome of a run while :func:`switched_off`: nothing is read, not even the pipeline's file."""
    from ..report.document import disabled_document
    from ..run.request import RunOutcome

    return RunOutcome(disabled_document(pipeline.stem if isinstance(pipeline, Path) else "pipeline"), 0)


def as_source(pipeline: Path | str | Mapping[str, object]) -> Path | str | Mapping[str, object]:
    """Return a path if *pipeline* names a file, else *pipeline* itself.

    One line that ends like a YAML file, or that names an existing file, is a path.
    """
    if isinstance(pipeline, str) and "\n" not in pipeline:
        path = Path(pipeline)
        if path.suffix in (".yaml", ".yml") or descriptor(path) is not None or path.is_file():
            return path
    return pipeline


def read_ledger(path: Path | str | None, function: Callable[[Ledger], T]) -> T:
    """Return the result of *function* on the ledger at *path*, by default ``$DICAST_LEDGER`` or ``.dicast/ledger.db``.

    :param path: a file; or, as text, a URL or a component ``{plugin/name: {options}}``.
    :raises LedgerRefused: when it does not exist or is no ledger.
    :raises ConfigError: when no component reads the URL, or the component has a fault.
    """
    from ..pipeline.default_ledger import ledger_component, reading
    from ..pipeline.ledger_path import FILE

    component, configuration = ledger_component(path)
    if component.name == FILE:
        from ..timing.immediate import run_immediately

        return run_immediately(reading(configuration, function))
    from ..timing.event_loop import in_loop

    return in_loop(reading(configuration, function))


def results(ledger: Ledger | None, run: str) -> Results:
    """Return the results of a finished run, named by its id, the name of its pipeline (the newest run), ``last``, or a file of ``jsonl/rows``.

    Without a *ledger* only a file can be read.

    :raises ConfigError: when there is none, or it is not completed.
    :raises DataError: when the file does not contain records.
    """
    from ..records.baseline import find_results, of_file  # imported late: the runner takes 40 ms to import

    run_results = of_file(Path(run)) if ledger is None else find_results(ledger, run, Path())
    if run_results is None:
        raise ConfigError("no run in this ledger was completed; dicast runs lists the runs")
    return run_results


def with_ledger(slot: Slot, function: Callable[[Ledger], T]) -> T:
    """Return the result of *function* on the ledger of *slot*, as :func:`read_ledger` does."""
    from ..pipeline.default_ledger import reading
    from ..timing.event_loop import in_loop

    return in_loop(reading(slot.component, function))
