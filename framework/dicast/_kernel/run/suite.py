"""A suite: its experiments one after the other, each compared with the baseline."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from decimal import Decimal
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import orjson

from ..classes import evolve, frozen
from ..contract.protocols import Ledger
from ..events import RUN_COMPLETED
from ..pipeline.build import build_pipeline
from ..pipeline.read import PipelineFile, read_pipeline
from ..pipeline.slots import ledger_slot
from ..plan.sections import Pipeline, Slot
from ..records.baseline import find_baseline
from ..report.document import document as decide
from ..report.document import exit_code, stopped_document
from ..report.gate import all_passed
from ..report.read_counts import read_sum
from ..resume.named_runs import known_run, started_runs
from ..resume.open_runs import SHOWN, RunCommand
from ..resume.reading import document
from ..resume.resume import EarlierRun, refuse_changes, standing
from ..source.source import data_digest
from ..stream.opening import open_component
from ..values import Query, RunContext
from ..values.clock import Clock
from ..values.errors import ConfigError, Problem, RequestError
from .end import ledger_json
from .plan import decided_by, file_identity
from .run import Request, RunOutcome

RunOne = Callable[[Pipeline, Request], Awaitable[RunOutcome]]
"""Runs one experiment."""

WORST = (130, 2, 70, 5, 4, 3, 1, 0)
"""Exit codes: the first of them that an experiment had is the suite's."""

ENDS = (130, 2, 70)
"""Exit codes after which no further experiment is begun."""


@frozen
class Suite:
    """What the experiments of *file* came to, by name; *baseline* is what others are compared with; *error* ended it early.

    *command* is the command that the user gave, without secrets.
    """

    file: str
    baseline: str | None
    outcomes: Mapping[str, RunOutcome]
    error: RequestError | None = None
    command: RunCommand | None = None

    @property
    def exit_code(self) -> int:
        """What ``dicast run`` returns."""
        codes = {outcome.exit_code for outcome in self.outcomes.values()} | ({2} if self.error else set())
        return next(code for code in WORST if code in codes)


def in_sum(suite: Suite) -> dict[str, Any]:
    """The document of a whole *suite*: the sums of its experiments' counts and costs, and whether all gates passed."""
    documents = {name: outcome.document for name, outcome in suite.outcomes.items()}
    done = stopped_document(Path(suite.file).stem, None)
    counts = ("subjects", "scored", "failed", "skipped", "unaffordable", "overruns", "row_count")
    done |= {name: sum(one[name] for one in documents.values()) for name in counts}
    for name in ("failures", "throttled"):
        done[name] = dict(sum((Counter(one[name]) for one in documents.values()), Counter[str]()))
    for name in ("cost", "spend_lost"):
        done[name] = {unit: _total(one[name][unit] for one in documents.values()) for unit in done[name]}
    done["read"] = read_sum(documents.values())
    due = done["scored"] + done["failed"] + done["unaffordable"]
    gates = {name: one["gate"] for name, one in documents.items() if one["gate"] is not None}
    passed = {gate["passed"] for gate in gates.values()}
    reasons = [f"{name}: {reason}" for name, gate in gates.items() for reason in gate["reasons"]]
    undecided = [f"{name}: {reason}" for name, one in documents.items() for reason in one["undecided"]]
    stopped = next((one["stopped"] for one in documents.values() if one["stopped"]), None)
    if suite.error is not None:
        stopped, passed = {"reason": "not_begun", "message": str(suite.error)}, passed | {None}
        undecided.append(f"not started: {suite.error}")
    return done | {
        "coverage": done["scored"] / due if due else None,
        "gate": {"passed": all_passed(passed), "reasons": reasons, "clauses": []} if gates else None,
        "undecided": undecided,
        "baseline": suite.baseline and {"run": suite.baseline, "run_id": None, "name": suite.baseline},
        "stopped": stopped,
        "ledger": None,
    }


def _total(amounts: Iterable[str | None]) -> str | None:
    """The sum of decimal texts; None where one is not known."""
    known = list(amounts)
    return None if None in known else str(sum(map(Decimal, filter(None, known)), Decimal(0)))


async def run_suite(read: PipelineFile, request: Request, run: RunOne) -> Suite:
    """*run* the experiments of a suite that was *read*, each after the one that it is compared with.

    :raises RequestError: when anything is wrong with any of them; nothing was run then.
    """
    file, pipelines = read.start.file, build_experiments(read)
    compared = {name: one.baseline.run for name, one in pipelines.items() if one.baseline is not None}
    order = _order(file, pipelines, {name: run for name, run in compared.items() if run in pipelines and run != name})
    setups = await _preflights(pipelines)
    earlier = {} if request.resume is None else await _earlier(file, pipelines, setups, request)
    first = next((one.payload["suite"] for one in earlier.values()), None)
    request = evolve(request, suite=first or {"id": Clock().id(), "experiments": order})
    outcomes: dict[str, RunOutcome] = {}
    command = request.command and request.command.masked(*pipelines.values())
    baseline = next((run for run in compared.values() if run in pipelines), None)
    for name in order:
        try:
            outcomes[name] = await _run(pipelines[name], request, earlier.get(name), outcomes, run)
        except RequestError as error:
            if not outcomes:
                raise
            return Suite(file, baseline, outcomes, error, command)
        if outcomes[name].exit_code in ENDS:
            break
    return Suite(file, baseline, outcomes, command=command)


def _order(file: str, names: Iterable[str], compared: Mapping[str, str]) -> list[str]:
    """The experiments in their order, but each after the one that it is *compared* with.

    :raises ConfigError: when some are compared with one another in a circle.
    """
    graph = TopologicalSorter({name: [compared[name]] if name in compared else [] for name in names})
    try:
        return list(graph.static_order())
    except CycleError as error:
        circle = " -> ".join(error.args[1])
        raise ConfigError(Problem(f"experiments are compared in a circle: {circle}", file, path="baseline")) from error


async def _preflights(pipelines: Mapping[str, Pipeline]) -> dict[str, Mapping[str, str]]:
    """What each experiment's run would be resumed by.

    :raises ConfigError: with what would refuse any of them.
    """
    found: dict[str, Mapping[str, str]] = {}
    problems: dict[Problem, None] = {}
    for name, pipeline in pipelines.items():
        try:
            found[name] = await _preflight(pipeline, ledger_slot(pipeline), pipelines)
        except RequestError as error:
            problems |= dict.fromkeys(error.problems)
    if problems:
        raise ConfigError(problems)
    return found


def load_experiments(file: Path, overrides: Sequence[str]) -> list[Pipeline]:
    """The pipelines of *file*: one, or those of a suite's experiments.

    :raises RequestError: with everything that is wrong.
    """
    read = read_pipeline(file, overrides)
    return [*build_experiments(read).values()] if read.experiments else [build_pipeline(read)]


def build_experiments(read: PipelineFile) -> dict[str, Pipeline]:
    """Every experiment's pipeline.

    :raises ConfigError: with what is wrong with any of them, once.
    """
    pipelines: dict[str, Pipeline] = {}
    problems: dict[Problem, None] = {}
    for name in read.experiments:
        try:
            pipelines[name] = build_pipeline(read, experiment=name)
        except RequestError as error:
            problems |= dict.fromkeys(error.problems)
    problems |= dict.fromkeys(_clashes(pipelines))
    if problems:
        raise ConfigError(problems)
    return pipelines


def _clashes(pipelines: Mapping[str, Pipeline]) -> Iterator[Problem]:
    """What two experiments would both write to."""
    first: dict[str, str] = {}
    for name, pipeline in pipelines.items():
        for slot in pipeline.sinks:
            path = getattr(slot.component, "path", None)
            if isinstance(path, Path) and first.setdefault(place := os.path.realpath(path), name) != name:
                both = f"the experiments {first[place]} and {name} both write to {path}"
                yield Problem(
                    f"{both}; let the path say which: {_by_experiment(path, pipeline.base)}",
                    pipeline.file,
                    path=slot.path,
                )


def _by_experiment(path: Path, base: Path) -> str:
    """*path* as a file in *base* has it, with the experiment in its name, quoted as YAML needs it: a brace would begin a mapping."""
    path = path.relative_to(base) if path.is_relative_to(base) else path
    ends = "".join(path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:])
    told = path.with_name(f"{path.name.removesuffix(ends)}-${{experiment}}{ends}").as_posix()
    return f"'{told.replace(chr(39), chr(39) * 2)}'"


async def _run(
    pipeline: Pipeline, request: Request, earlier: EarlierRun | None, outcomes: Mapping[str, RunOutcome], run: RunOne
) -> RunOutcome:
    """Run one experiment, or take up what an earlier process left of it; its baseline may be one of the suite's others."""
    if earlier is not None and earlier.finished and not request.retry_failed:
        async with ledger_slot(pipeline).component.open(None, create=False) as ledger:
            if (ended := _ended(ledger, earlier, pipeline)) is not None:
                return ended
    baseline = pipeline.baseline
    if baseline is not None and baseline.run in outcomes:
        found = outcomes[baseline.run].document["run_id"]
        pipeline = evolve(pipeline, baseline=evolve(baseline, run=found))
    elif baseline is not None and baseline.run == pipeline.experiment:
        pipeline = evolve(pipeline, baseline=None)
    resume = None if earlier is None else earlier.run_id
    retry = request.retry_failed and earlier is not None
    return await run(pipeline, evolve(request, resume=resume, retry_failed=retry, ended=True))


def _ended(ledger: Ledger, earlier: EarlierRun, pipeline: Pipeline) -> RunOutcome | None:
    """What a run that has ended came to; None where *pipeline* decides it otherwise, by another gate or another ``pass_at``."""
    told: dict[str, Any] = {**(document(ledger, earlier.run_id) or {}), "ledger": ledger_json(ledger)}
    report = standing(ledger, earlier.run_id, {**earlier.payload, **decided_by(pipeline)})
    now = decide(report, pipeline.scoring.aggregation, pipeline.gate, stopped=told["stopped"])
    parts = (
        {name: one[name] for name in ("gate", "undecided", "score", "labels", "metrics", "judges")}
        for one in (told, now)
    )
    before, after = (orjson.loads(orjson.dumps(part)) for part in parts)
    return RunOutcome(told, exit_code(told)) if before == after else None


async def _earlier(
    file: str, pipelines: Mapping[str, Pipeline], setups: Mapping[str, Mapping[str, str]], request: Request
) -> dict[str, EarlierRun]:
    """Return the runs of the newest suite of these experiments, or of the suite of the run *request.resume*; ended runs too.

    Where failures are retried all are taken up, since a baseline whose failures are retried is another one for those compared with it.

    :raises ConfigError: when nothing of the suite is left to resume, or an experiment has changed since.
    """
    async with ledger_slot(next(iter(pipelines.values()))).component.open(None, create=False) as ledger:
        found, others = _newest(ledger, pipelines, request.resume or "")
    is_over = len(found) == len(pipelines) and all(one.finished for one in found.values())
    if not found or (not request.retry_failed and is_over):
        if others and not request.resume:
            raise ConfigError(_only_others(file, pipelines, others, request))
        raise ConfigError("there is no unfinished run of this suite in the ledger; leave --resume out to begin")
    for name, one in found.items():
        refuse_changes(one, setups[name])
    return found


def _newest(
    ledger: Ledger, pipelines: Mapping[str, Pipeline], run_id: str
) -> tuple[dict[str, EarlierRun], dict[str, EarlierRun]]:
    """Return the runs of the newest suite of *pipelines* by experiment, and an open run of each suite under another name.

    :param run_id: a run whose suite is meant, under whichever name; empty for the newest suite with a run of the same name.
    """
    files = {file_identity(pipeline): name for name, pipeline in pipelines.items()}
    runs = [
        (name, entry)
        for entry in started_runs(ledger.read)
        if (name := files.get(str(entry.event.payload["file"]))) is not None
        and entry.event.payload.get("suite")
        and not entry.event.payload.get("preview")
    ]
    known = known_run(ledger, run_id) if run_id else None
    meant = (
        entry.event.payload["suite"]
        for name, entry in runs
        if (entry.event.run_id == known if known else entry.event.payload["name"] == pipelines[name].name)
    )
    suite = next(meant, None)
    if known and suite is None:
        raise ConfigError(f"run {known} is of no suite of this file: name a run of {', '.join(pipelines)}")
    found, others = dict[str, EarlierRun](), dict[str, EarlierRun]()
    for name, entry in runs:
        ended = Query(run_id=entry.event.run_id, types=(RUN_COMPLETED,), limit=1)
        if entry.event.payload["suite"] == suite:
            found.setdefault(name, EarlierRun(entry, any(ledger.read(ended))))
        elif entry.event.payload["name"] != pipelines[name].name and not any(ledger.read(ended)):
            run = EarlierRun(entry, finished=False)
            others.setdefault(str(entry.event.payload["name"]).removesuffix(f"/{name}"), run)
    return found, others


def _only_others(
    file: str, pipelines: Mapping[str, Pipeline], others: Mapping[str, EarlierRun], request: Request
) -> str:
    """Return the error that names the open suites of *file* under other names."""
    own = next(one.name.removesuffix(f"/{experiment}") for experiment, one in pipelines.items())
    command = (request.command or RunCommand(file)).masked(*pipelines.values())
    listed = "; ".join(
        f"{name!r}, with run {run.run_id}: {command.resuming(None, *request.flags, name=name)}"
        for name, run in [*others.items()][:SHOWN]
    )
    return f"{file} has no open suite named {own!r}. Resume a suite of another name: {listed}"


async def _preflight(pipeline: Pipeline, ledger: Slot, later: Collection[str]) -> Mapping[str, str]:
    """Read the data of *pipeline* whole, and find its baseline unless that is one of *later*; return what a run is resumed by.

    :raises RequestError: when the run would be refused for them.
    """
    async with AsyncExitStack() as stack:
        draft = RunContext(Clock().id(), pipeline.name, pipeline.base)
        live = await open_component(ledger.component, draft, stack)
        if pipeline.baseline is not None and pipeline.baseline.run not in later:
            find_baseline(live, pipeline)
        slot = pipeline.source
        assert slot is not None  # dicast run needs one
        source = await open_component(slot.component, evolve(draft, read=live.read), stack)
        return {**pipeline.setup, **await data_digest(source, f"source {slot.name}", pipeline)}
