"""Running a pipeline from Python; the command line calls the same."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from .events import EVAL_COMPLETED, RUN_STARTED
from .values import Query, Results, Rubric, Subject, Verdict
from .values.errors import ConfigError, PluginError
from .values.paths import descriptor

if TYPE_CHECKING:
    from .contract.protocols import Ledger, Source
    from .pipeline.sections import Pipeline, Slot
    from .run.dry_run import Forecast
    from .run.run import Outcome, Request

T = TypeVar("T")

LEDGER_PATH = Path(".dicast") / "ledger.db"

LEAVE_SECONDS = 2.0
"""How long is waited for the tasks that components left, once they are cancelled."""


@attrs.frozen
class Run:
    """A finished run: the fields of ``dicast run --json``, and the verdicts.

    *score* is None with several judges and no ``gate.on``; every mean is over what was scored, which *coverage* is the share
    of; ``gate["passed"]`` is None where it is undecided; amounts of money are decimal strings, None when unknown; *exit_code* is what ``dicast run`` would return.
    """

    run_id: str | None
    name: str
    subjects: int
    scored: int
    failed: int
    skipped: int
    unaffordable: int
    coverage: float | None
    failures: Mapping[str, int]
    score: Mapping[str, Any] | None
    metrics: Mapping[str, Mapping[str, Any]]
    judges: Mapping[str, Mapping[str, Any]]
    cost: Mapping[str, str | None]
    spend_lost: Mapping[str, str | None]
    overruns: int
    throttled: Mapping[str, int]
    gate: Mapping[str, Any]
    stopped: Mapping[str, Any] | None
    row_count: int
    retry_summary: Mapping[str, int] | None
    security_level: str | None
    determinism_level: str | None
    aggregates: Mapping[str, Any]
    comparison: Mapping[str, Any] | None
    baseline: Mapping[str, str | None] | None
    broken: Mapping[str, str]
    sinks: Mapping[str, Mapping[str, Any]]
    worst: Sequence[Mapping[str, Any]]
    failed_subjects: Sequence[Mapping[str, Any]]
    ledger: Mapping[str, Any] | None
    exit_code: int
    disabled: bool = False
    warnings: Sequence[Mapping[str, str]] = ()
    models: Mapping[str, Sequence[str]] = attrs.field(factory=dict)
    _open_ledger: Slot | None = attrs.field(default=None, repr=False, eq=False)

    @property
    def verdicts(self) -> list[Verdict]:
        """Every verdict of this run, in the order of its subjects, read from the ledger."""
        from .resume.reading import verdict  # the ledger's readers need the converter, which takes 40 ms to import

        if self._open_ledger is None or self.run_id is None:
            return []
        query = Query(run_id=self.run_id, types=(EVAL_COMPLETED,))
        return with_ledger(self._open_ledger, lambda ledger: [verdict(entry.event) for entry in ledger.read(query)])


def run(
    pipeline: Path | str | Mapping[str, object],
    *,
    overrides: Mapping[str, object] | Sequence[str] = (),
    subjects: Iterable[Subject] | None = None,
) -> Run:
    """Run a pipeline and wait for it.

    :param pipeline: a file, YAML text, or a mapping.
    :param overrides: dotted paths with the values to use instead (``{"scoring.threshold": 0.7}``), or texts as after ``--set``.
    :param subjects: what to judge instead of what the pipeline's source yields.
    :raises RequestError: when the request is wrong; nothing was judged then, nothing spent.
    :raises LedgerRefused: when the ledger cannot be used.
    """
    return in_loop(arun(pipeline, overrides=overrides, subjects=subjects))


async def arun(
    pipeline: Path | str | Mapping[str, object],
    *,
    overrides: Mapping[str, object] | Sequence[str] = (),
    subjects: Iterable[Subject] | None = None,
) -> Run:
    """The same as :func:`run`, in the event loop that is running."""
    from .pipeline.build import load_pipeline  # PyYAML and cattrs take 40 ms to import
    from .run.run import Request
    from .stream.source import GivenSubjects

    source = as_source(pipeline)
    if switched_off():
        outcome = not_run(source)
        return Run(**outcome.document, exit_code=outcome.exit_code)
    built = load_pipeline(source, overrides, needs_source=subjects is None)
    ledger = ledger_slot(built)
    outcome = await run_unless_disabled(
        built, ledger, Request(source=None if subjects is None else GivenSubjects(subjects))
    )
    return Run(**outcome.document, exit_code=outcome.exit_code, open_ledger=ledger)


def forecast(pipeline: Path | str | Mapping[str, object], source: Source) -> Forecast:
    """How many subjects *source* has, and what judging all of them as *pipeline* says may cost at most. Nothing is judged.

    :raises RequestError: when the request is wrong.
    """
    from .pipeline.build import load_pipeline
    from .run.dry_run import forecast

    built = load_pipeline(as_source(pipeline), needs_source=False)
    return in_loop(forecast(built, ledger_slot(built), source))


def rubric(name: str) -> Rubric:
    """The rubric *name*, an installed one's id or a file's path: for a component whose rubric depends on what it judges.

    :raises ConfigError: when there is none.
    :raises PluginError: when the distribution that has it is broken, or another one has the same id.
    """
    from .pipeline.rubrics import load_rubric

    return load_rubric(name, Path())


async def run_unless_disabled(pipeline: Pipeline, ledger: Slot, request: Request) -> Outcome:
    """Run *pipeline*, unless it is ``disabled``."""
    from .report.document import disabled_document
    from .run.run import Outcome, execute

    if pipeline.disabled:
        return Outcome(disabled_document(pipeline.name), 0)
    return await execute(pipeline, ledger, request)


def switched_off() -> bool:
    """Whether ``DICAST_DISABLED`` says that nothing is to be judged."""
    return os.environ.get("DICAST_DISABLED", "") not in ("", "0")


def not_run(pipeline: Path | str | Mapping[str, object]) -> Outcome:
    """What a run comes to where it is :func:`switched_off`: nothing is read, not even the pipeline's file."""
    from .report.document import disabled_document
    from .run.run import Outcome

    return Outcome(disabled_document(pipeline.stem if isinstance(pipeline, Path) else "pipeline"), 0)


def as_source(pipeline: Path | str | Mapping[str, object]) -> Path | str | Mapping[str, object]:
    """Tell a file's name from YAML text: one line that ends like a file, or names one, is a file."""
    if isinstance(pipeline, str) and "\n" not in pipeline:
        path = Path(pipeline)
        if path.suffix in (".yaml", ".yml") or descriptor(path) is not None or path.is_file():
            return path
    return pipeline


def ledger_slot(pipeline: Pipeline) -> Slot:
    """The pipeline's ledger, or the default one."""
    return pipeline.ledger or ledger_at(None)


def ledger_at(path: Path | None) -> Slot:
    """The SQLite ledger at *path*, by default at ``$DICAST_LEDGER`` or ``.dicast/ledger.db``."""
    from .contract.registry import Registry
    from .pipeline.sections import Slot

    found = Registry().find("ledger/sqlite", ("ledger",))
    live = found.cls(path=path or Path(os.environ.get("DICAST_LEDGER") or LEDGER_PATH))
    return Slot(found.name, found.name, live, found.kind, found.version, found.distribution, "ledger", {}, "")


def read_ledger(path: Path | None, function: Callable[[Ledger], T]) -> T:
    """Return what *function* makes of the ledger at *path*, by default of the one at ``$DICAST_LEDGER`` or ``.dicast/ledger.db``.

    :raises LedgerRefused: when it does not exist or is no ledger.
    """
    return with_ledger(ledger_at(path), function)


def known_run(ledger: Ledger, run_id: str) -> str:
    """The id of the run that is meant; ``last`` is the one that began last.

    :raises ConfigError: when the ledger has no such run.
    """
    found = find_run(ledger, run_id)
    if found is None:
        raise ConfigError(f"the ledger has no run {run_id!r}; leave --run out to read all of them")
    return found


def find_run(ledger: Ledger, run_id: str) -> str | None:
    """The same as :func:`known_run`; None when the ledger has no such run."""
    query = Query(None if run_id == "last" else run_id, (RUN_STARTED,), newest_first=True, limit=1)
    return next((entry.event.run_id for entry in ledger.read(query)), None)


def results(ledger: Ledger | None, run: str) -> Results:
    """The records of a finished run: its id, the name of its pipeline (the newest of them), ``last``, or a file of ``jsonl/rows``.

    Without a *ledger* it can only be a file.

    :raises ConfigError: when there is none, or it has not ended in order.
    :raises DataError: when the file is not one of records.
    """
    from .records.baseline import find_results, of_file  # the runner takes 40 ms to import

    found = of_file(Path(run)) if ledger is None else find_results(ledger, run, Path())
    if found is None:
        raise ConfigError("no run in this ledger has ended in order")
    return found


def with_ledger(slot: Slot, function: Callable[[Ledger], T]) -> T:
    """The same as :func:`read_ledger`, for the ledger of *slot*."""

    async def read() -> T:
        async with slot.component.open(None, create=False) as ledger:
            return function(ledger)

    return in_loop(read())


def in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run *work* to its end, in a thread of its own where an event loop is running already."""
    import asyncio  # 20 ms, which importing dicast does not spend
    from concurrent.futures import ThreadPoolExecutor

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        alone = True
    else:
        alone = False
    try:
        if alone:
            return _run_alone(work)
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(_run_alone, work).result()
    except asyncio.CancelledError as error:  # nobody else knows the tasks of a loop of its own
        raise PluginError(
            "a component has cancelled the tasks of the run; what was judged is kept, and --resume goes on"
        ) from error


def _run_alone(work: Coroutine[Any, Any, T]) -> T:
    """Run *work* as ``asyncio.run`` does, which would wait for the tasks and threads that components left, however long they take."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    threads = ThreadPoolExecutor(thread_name_prefix="dicast")  # has none before there is work for one
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        loop.set_default_executor(threads)
        try:
            return runner.run(work)
        finally:
            loop.run_until_complete(_leave_tasks())
            threads.shutdown(wait=False, cancel_futures=True)
            loop.set_default_executor(ThreadPoolExecutor(1))  # the loop waits for this one's threads


async def _leave_tasks() -> None:
    import asyncio

    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        _, deaf = await asyncio.wait(left, timeout=LEAVE_SECONDS)
        for task in deaf:
            asyncio._unregister_task(task)  # noqa: SLF001  # documented, and all that keeps the loop's end from waiting
