"""Suite of experiments, run one after the other, each compared with the baseline."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from decimal import Decimal
from functools import partial
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
from ..records.baseline import find_baseline, find_gate_runs
from ..report.document import exit_code, stopped_document
from ..report.gate import all_passed, undecided_without
from ..report.not_started import SUITE_ENDS
from ..report.read_counts import read_sum
from ..resume.named_runs import known_run, started_runs
from ..resume.open_runs import MAX_NAMED, RunCommand
from ..resume.queries import document
from ..resume.resume import EarlierRun, current_report, refuse_changes
from ..source.columns import checked_data
from ..stream.opening import open_component
from ..stream.opening_context import opening
from ..values import Query, RunContext
from ..values.clock import Clock
from ..values.errors import ConfigError, Problem, RequestError
from .end import gated_document, ledger_json
from .option_texts import changes_pace_alone, name_changes
from .plan import decided_by, file_identity
from .request import Request, RunOutcome
from .suite_pairs import ExperimentPairs, read_pairs

RunOne = Callable[[Pipeline, Request], Awaitable[RunOutcome]]
"""Function that runs one experiment."""

WORST = (130, 2, 70, 5, 4, 3, 1, 0)
"""Exit codes, the worst first. The suite ends with the worst exit code of its experiments."""


@frozen
class Suite:
    """Outcomes of the experiments of *file*, by name.

    *baseline* is the experiment that others are compared with; *error* ended the suite early. *command* is the command that the user
    gave, without secrets. *pairs* are the experiments that ``dicast compare`` accepts. *not_started* are the experiments after the one that ended
    the suite.
    """

    file: str
    baseline: str | None
    outcomes: Mapping[str, RunOutcome]
    error: RequestError | None = None
    command: RunCommand | None = None
    pairs: ExperimentPairs | None = None
    not_started: Sequence[str] = ()

    @property
    def exit_code(self) -> int:
        """The exit code of ``dicast run``."""
        codes = {outcome.exit_code for outcome in self.outcomes.values()} | ({2} if self.error else set())
        return next(code for code in WORST if code in codes)


def _failures_by_origin(documents: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Return the sums of the failures that no judge caused, by their origin and kind."""
    sums: dict[str, Counter[str]] = {}
    for origin, counts in (item for done in documents for item in done.get("failures_by_origin", {}).items()):
        sums.setdefault(origin, Counter()).update(counts)
    return {origin: dict(counts) for origin, counts in sums.items()}


def suite_document(suite: Suite) -> dict[str, Any]:
    """Return the document of a whole *suite*: the sums of its experiments' counts and costs, and the decision over all gates."""
    documents = {name: outcome.document for name, outcome in suite.outcomes.items()}
    done = stopped_document(Path(suite.file).stem, None)
    counts = ("subjects", "scored", "failed", "skipped", "unaffordable", "overruns", "row_count")
    done |= {name: sum(document_[name] for document_ in documents.values()) for name in counts}
    for name in ("failures", "throttled"):
        done[name] = dict(sum((Counter(document_[name]) for document_ in documents.values()), Counter[str]()))
    if by_origin := _failures_by_origin(documents.values()):
        done["failures_by_origin"] = by_origin
    if caps := {name: cap for document_ in documents.values() for name, cap in document_.get("caps", {}).items()}:
        done["caps"] = caps
    for name in ("cost", "spend_lost"):
        done[name] = {unit: _total(document_[name][unit] for document_ in documents.values()) for unit in done[name]}
    done["read"] = read_sum(documents.values())
    due = done["scored"] + done["failed"] + done["unaffordable"]
    gates = {name: document_["gate"] for name, document_ in documents.items() if document_["gate"] is not None}
    passed = {gate["passed"] for gate in gates.values()}
    reasons = [f"{name}: {reason}" for name, gate in gates.items() for reason in gate["reasons"]]
    undecided = [f"{name}: {reason}" for name, document_ in documents.items() for reason in document_["undecided"]]
    stopped = next((document_["stopped"] for document_ in documents.values() if document_["stopped"]), None)
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
    """Return the sum of decimal texts; None if one is unknown."""
    values = list(amounts)
    return None if None in values else str(sum(map(Decimal, filter(None, values)), Decimal(0)))


async def run_suite(read: PipelineFile, request: Request, run: RunOne) -> Suite:
    """Run the experiments of the suite *read*, each after the experiment that it is compared with.

    :param run: runs one experiment.
    :raises RequestError: when any experiment is invalid; nothing was run then.
    """
    file, pipelines = read.start.file, build_experiments(read)
    compared = {name: item.baseline.run for name, item in pipelines.items() if item.baseline is not None}
    order = _order(file, pipelines, _needed_experiments(pipelines))
    setups = await _preflights(pipelines)
    earlier = {} if request.resume is None else await _earlier(file, pipelines, setups, request)
    first = next((item.payload["suite"] for item in earlier.values()), None)
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
            rest = order[order.index(name) + 1 :]
            pairs = await read_pairs(pipelines, outcomes, baseline)
            return Suite(file, baseline, outcomes, error, command, pairs, rest)
        if outcomes[name].exit_code in SUITE_ENDS:
            break
    pairs = await read_pairs(pipelines, outcomes, baseline)
    return Suite(file, baseline, outcomes, None, command, pairs, order[len(outcomes) :])


def without_suite(pipeline: Pipeline, experiments: Iterable[str]) -> tuple[Pipeline, dict[str, str]]:
    """Return the *pipeline* of an experiment that runs alone, and the names of the runs of the other *experiments*.

    The baseline and the gate compare it with the newest runs of these names; a baseline that is the experiment itself is left out.
    """
    suite = pipeline.name.removesuffix(f"/{pipeline.experiment}")
    names = {name: f"{suite}/{name}" for name in experiments if name != pipeline.experiment}
    baseline = pipeline.baseline
    if baseline is not None:
        is_itself = baseline.run == pipeline.experiment
        baseline = None if is_itself else evolve(baseline, run=names.get(baseline.run, baseline.run))
    return evolve(pipeline, baseline=baseline), names


def _needed_experiments(pipelines: Mapping[str, Pipeline]) -> dict[str, list[str]]:
    """Return the other experiments that each experiment is compared with, by its baseline and by its gate."""
    needed: dict[str, list[str]] = {}
    for name, pipeline in pipelines.items():
        runs = [run for _, run in pipeline.gate.baselines()]
        runs += [] if pipeline.baseline is None else [pipeline.baseline.run]
        needed[name] = [run for run in runs if run in pipelines and run != name]
    return needed


def _order(file: str, names: Iterable[str], compared: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the experiments in their order, but each after the experiments that it is compared with.

    :param compared: these other experiments, by name.
    :raises ConfigError: when experiments are compared with one another in a circle.
    """
    graph = TopologicalSorter({name: compared[name] for name in names})
    try:
        return list(graph.static_order())
    except CycleError as error:
        circle = " -> ".join(error.args[1])
        raise ConfigError(
            Problem(f"experiments are compared in a circle: {circle}; change one baseline", file, path="baseline")
        ) from error


async def _preflights(pipelines: Mapping[str, Pipeline]) -> dict[str, Mapping[str, str]]:
    """Return the digests that each experiment's run is resumed by.

    :raises ConfigError: with every reason to refuse any of them.
    """
    setups: dict[str, Mapping[str, str]] = {}
    problems: dict[Problem, None] = {}
    for name, pipeline in pipelines.items():
        try:
            setups[name] = await _preflight(pipeline, ledger_slot(pipeline), pipelines)
        except RequestError as error:
            problems |= dict.fromkeys(error.problems)
    if problems:
        raise ConfigError(problems)
    return setups


def load_experiments(file: Path, overrides: Sequence[str]) -> list[Pipeline]:
    """Return the pipelines of *file*: one, or one for each experiment of a suite.

    :raises RequestError: with every problem of the file.
    """
    read = read_pipeline(file, overrides)
    return [*build_experiments(read).values()] if read.experiments else [build_pipeline(read)]


def build_experiments(read: PipelineFile) -> dict[str, Pipeline]:
    """Return the pipeline of every experiment.

    :raises ConfigError: with every problem of any of them, each problem once.
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
    """Yield a problem for each file that two experiments would both write to."""
    first: dict[str, str] = {}
    for name, pipeline in pipelines.items():
        for slot in pipeline.sinks:
            path = getattr(slot.component, "path", None)
            if isinstance(path, Path) and first.setdefault(place := os.path.realpath(path), name) != name:
                both = f"the experiments {first[place]} and {name} both write to {path}"
                yield Problem(
                    f"{both}; add the experiment to the path: {_by_experiment(path, pipeline.base)}",
                    pipeline.file,
                    path=slot.path,
                )


def _by_experiment(path: Path, base: Path) -> str:
    """Return the example of a *path* with the experiment in its file name, relative to *base* if possible, quoted for YAML."""
    path = path.relative_to(base) if path.is_relative_to(base) else path
    suffix = "".join(path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:])
    example = path.with_name(f"{path.name.removesuffix(suffix).rstrip('-')}-${{experiment}}{suffix}").as_posix()
    return f"'{example.replace(chr(39), chr(39) * 2)}'"


async def _run(
    pipeline: Pipeline, request: Request, earlier: EarlierRun | None, outcomes: Mapping[str, RunOutcome], run: RunOne
) -> RunOutcome:
    """Run one experiment, or resume the run of an earlier process; its baseline may be another experiment of the suite.

    A completed run is replayed only for sinks that need all events, such as the one test report of all experiments.
    """
    experiments = {name: outcome.document["run_id"] for name, outcome in outcomes.items()}
    rewrites = any(getattr(slot.component, "rewrites", False) for slot in pipeline.sinks)
    if earlier is not None and earlier.finished and not request.retry_failed and not rewrites:
        async with opening(ledger_slot(pipeline).component, None, create=False) as ledger:
            if (outcome := _completed_outcome(ledger, earlier, pipeline, experiments)) is not None:
                return outcome
    baseline = pipeline.baseline
    if baseline is not None and baseline.run in outcomes:
        pipeline = evolve(pipeline, baseline=evolve(baseline, run=experiments[baseline.run]))
    elif baseline is not None and baseline.run == pipeline.experiment:
        pipeline = evolve(pipeline, baseline=None)
    resume = None if earlier is None else earlier.run_id
    retry = request.retry_failed and earlier is not None
    request = evolve(request, resume=resume, retry_failed=retry, allow_ended=True, experiments=experiments)
    return await run(pipeline, request)


def _completed_outcome(
    ledger: Ledger, earlier: EarlierRun, pipeline: Pipeline, experiments: Mapping[str, str | None]
) -> RunOutcome | None:
    """Return the outcome of a completed run; None if the gate or the ``pass_at`` of *pipeline* would decide it differently now."""
    recorded: dict[str, Any] = {
        **(document(ledger, earlier.run_id) or {}),
        "ledger": ledger_json(ledger, ledger_slot(pipeline)),
    }
    report = current_report(ledger, earlier.run_id, {**earlier.payload, **decided_by(pipeline)})
    baselines = find_gate_runs(ledger, pipeline, earlier.run_id, experiments=experiments)
    current = gated_document(ledger, pipeline, report, baselines, recorded["stopped"])
    current |= undecided_without({"gate": current["gate"], "undecided": current["undecided"]}, recorded)
    parts = (
        {name: state[name] for name in ("gate", "undecided", "score", "labels", "metrics", "judges")}
        for state in (recorded, current)
    )
    before, after = (orjson.loads(orjson.dumps(part)) for part in parts)
    return RunOutcome(recorded, exit_code(recorded)) if before == after else None


async def _earlier(
    file: str, pipelines: Mapping[str, Pipeline], setups: Mapping[str, Mapping[str, str]], request: Request
) -> dict[str, EarlierRun]:
    """Return the runs of the newest suite of these experiments, or of the suite of the run *request.resume*, including ended runs.

    When failures are retried, every experiment is resumed: a baseline with retried failures changes the comparisons with it.

    :raises ConfigError: when nothing of the suite is left to resume, or an experiment has changed since.
    """
    async with opening(ledger_slot(next(iter(pipelines.values()))).component, None, create=False) as ledger:
        runs, other_suites = _newest(ledger, pipelines, request.resume or "")
    is_over = len(runs) == len(pipelines) and all(run.finished for run in runs.values())
    if not runs or (not request.retry_failed and is_over):
        if other_suites and not request.resume:
            raise ConfigError(_only_others(file, pipelines, other_suites, request))
        raise ConfigError("the ledger has no unfinished run of this suite; remove --resume to start a new one")
    for name, run in runs.items():
        place = pipelines[name], getattr(ledger, "keeps_content", True)
        refuse_changes(run, setups[name], partial(name_changes, *place), partial(changes_pace_alone, *place))
    return runs


def _newest(
    ledger: Ledger, pipelines: Mapping[str, Pipeline], run_id: str
) -> tuple[dict[str, EarlierRun], dict[str, EarlierRun]]:
    """Return the runs of the newest suite of *pipelines* by experiment, and an open run of each suite under another name.

    :param run_id: a run of the suite, under any name; empty for the newest suite with a run of the same name.
    """
    files = {file_identity(pipeline): name for name, pipeline in pipelines.items()}
    runs = [
        (name, entry)
        for entry in started_runs(ledger.read)
        if (name := files.get(str(entry.event.payload["file"]))) is not None
        and entry.event.payload.get("suite")
        and not entry.event.payload.get("preview")
    ]
    chosen_id = known_run(ledger, run_id) if run_id else None
    matching_suites = (
        entry.event.payload["suite"]
        for name, entry in runs
        if (entry.event.run_id == chosen_id if chosen_id else entry.event.payload["name"] == pipelines[name].name)
    )
    suite = next(matching_suites, None)
    if chosen_id and suite is None:
        raise ConfigError(f"run {chosen_id} belongs to no suite of this file; name a run of {', '.join(pipelines)}")
    suite_runs, other_suites = dict[str, EarlierRun](), dict[str, EarlierRun]()
    for name, entry in runs:
        query = Query(run_id=entry.event.run_id, types=(RUN_COMPLETED,), limit=1)
        if entry.event.payload["suite"] == suite:
            suite_runs.setdefault(name, EarlierRun(entry, any(ledger.read(query))))
        elif entry.event.payload["name"] != pipelines[name].name and not any(ledger.read(query)):
            run = EarlierRun(entry, finished=False)
            other_suites.setdefault(str(entry.event.payload["name"]).removesuffix(f"/{name}"), run)
    return suite_runs, other_suites


def _only_others(
    file: str, pipelines: Mapping[str, Pipeline], other_suites: Mapping[str, EarlierRun], request: Request
) -> str:
    """Return the error message for a *file* whose open suites all have other names, with the commands that resume them."""
    name_ = next(pipeline.name.removesuffix(f"/{experiment}") for experiment, pipeline in pipelines.items())
    command = (request.command or RunCommand(file)).masked(*pipelines.values())
    listed = "; ".join(
        f"{name!r}, with run {run.run_id}: {command.resuming(None, *request.flags, name=name)}"
        for name, run in [*other_suites.items()][:MAX_NAMED]
    )
    return f"{file} has no open suite named {name_!r}. Resume a suite of another name: {listed}"


async def _preflight(pipeline: Pipeline, ledger: Slot, later: Collection[str]) -> Mapping[str, str]:
    """Read all data of *pipeline*, find its baseline unless it is one of *later*, and return the digests that a run is resumed by.

    :raises RequestError: when the data or the baseline would refuse the run.
    """
    async with AsyncExitStack() as stack:
        draft = RunContext(Clock().id(), pipeline.name, pipeline.base)
        live = await open_component(ledger.component, draft, stack)
        if pipeline.baseline is not None and pipeline.baseline.run not in later:
            find_baseline(live, pipeline, experiments=later)
        find_gate_runs(live, pipeline, experiments=dict.fromkeys(later))
        slot = pipeline.source
        assert slot is not None  # dicast run requires a source
        source = await open_component(slot.component, evolve(draft, read=live.read), stack)
        digest = await checked_data(source, f"source {slot.name}", pipeline)
        return {**pipeline.setup, **digest}
