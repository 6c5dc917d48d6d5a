"""The command ``dicast run``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from ...toolkit.terminal import print_lines
from ..api.runs import as_source, not_run, run_unless_disabled, switched_off
from ..pipeline.build import build_pipeline
from ..pipeline.ledger_path import without_password
from ..pipeline.read import PipelineFile, read_pipeline
from ..pipeline.slots import ledger_slot
from ..plan.sections import Budget, Pipeline
from ..resume.named_runs import LAST
from ..resume.open_runs import RunCommand
from ..run.request import Request, RunOutcome
from ..stream.opening_context import opening
from ..timing.event_loop import in_loop
from .calling_command import CallingCommand
from .combinations import refuse_combinations
from .options import LEDGER, ShardPart, as_json, full, overrides
from .output import MOST, only_document, print_json
from .outputs import Outputs
from .progress import Progress
from .requirements import requires
from .screen import screen_parts
from .summary import run_parts

if TYPE_CHECKING:
    from ..api.runs import RunKind
    from ..source.filters import Condition, Failing
    from ..source.shard import Shard
    from .head import Row
    from .metric_lines import Figure, RunLines


@click.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--limit", type=click.IntRange(0, MOST), metavar="N", help="Read at most N subjects.")
@click.option(
    "--head", type=click.IntRange(1, MOST), metavar="N", help="Try N subjects: show their rows and write no sink."
)
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="RULE",
    help="Judge only subjects with KEY=TEXT or KEY~PATTERN (!= and !~ for the others), or failing[=RUN]: not passed before, under any label of the gate. Repeatable.",
)
@click.option("--only", multiple=True, metavar="LABEL", help="Judge only by this metric or judge. Repeatable.")
@click.option(
    "--out",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write the run to FILE.html, .md, .csv (column llm_content: a task's output), or .json (as --json). Repeatable.",
)
@click.option("--experiment", metavar="NAME", help="Run only this experiment of a suite, also with --watch.")
@overrides
@click.option(
    "--resume",
    is_flag=False,
    flag_value="",
    metavar="[RUN_ID]",
    help="Resume the newest unfinished run of this file and name (also: last), or the run with this id.",
)
@click.option("--retry-failed", is_flag=True, help="With --resume: judge the failed subjects again.")
@click.option(
    "--cancel-batches",
    is_flag=True,
    help="Cancel open batches if the run is interrupted; with --resume, the batches of the earlier process.",
)
@click.option(
    "--yes", is_flag=True, help="Run code from files that checks name, even if the section trust does not list them."
)
@click.option("--metric-lines", is_flag=True, help="Print METRIC lines to stdout and nothing else.")
@click.option("--primary", metavar="LABEL", help="With --metric-lines: the label whose mean becomes METRIC score.")
@click.option(
    "--watch",
    is_flag=True,
    help="Judge again when the file, a prompt or the data changes; pay only for the changes. Ctrl-C ends.",
)
@click.option(
    "--ledger",
    type=LEDGER,
    metavar="PLACE",
    help="Record in this ledger instead of the file's: a path, a URL or '{plugin/name: {options}}'.",
)
@click.option(
    "--shard",
    type=ShardPart(),
    metavar="I/N",
    help="Judge the I-th of N parts of the subjects; dicast merge makes one run of the parts.",
)
@full
@as_json
@requires(primary="metric_lines", retry_failed="resume")
def run(
    file: Path | None,
    limit: int | None,
    head: int | None,
    filters: tuple[str, ...],
    only: tuple[str, ...],
    out: tuple[Path, ...],
    experiment: str | None,
    overrides: tuple[str, ...],
    resume: str | None,
    retry_failed: bool,
    cancel_batches: bool,
    yes: bool,
    metric_lines: bool,
    primary: str | None,
    watch: bool,
    ledger: Path | str | None,
    shard: Shard | None,
    full: bool,
    as_json: bool,
) -> int:
    """Judge the subjects of the pipeline FILE. Exit codes: 0 passed, 1 gate failed, 2 invalid request, 3 undecided, 4 data lost in a sink
    or the ledger, 5 the budget allows no judge at all, 70 a defect in dicast, 130 interrupted.
    """
    if file is None and resume:  # dicast run --resume FILE: the id is optional, so the value is the file
        file, resume = Path(resume), ""
    if file is None:
        raise click.UsageError("Missing argument 'FILE': dicast run FILE")
    if resume == LAST:  # the newest unfinished run, as without a value
        resume = ""
    refuse_combinations(click.get_current_context().params)
    with Outputs(out) as outputs:
        flags = [*selection(filters, shard=shard, experiment=experiment), *unrecorded_options(ledger, out, yes=yes)]
        caller = click.get_current_context().find_object(CallingCommand) or CallingCommand(("dicast", "run"))
        command = caller.command(str(file), overrides, flags, only)
        request = Request(
            limit if head is None else head,
            resume,
            retry_failed,
            trusts_all=yes,
            cancel_batches=cancel_batches,
            command=attrs.evolve(command, is_resumable=head is None),
            filters=_rules(filters),
            shard=shard,
        )
        read = partial(
            read_chosen, file, overrides, only, outputs, ledger, experiment, resumed=request.resume is not None
        )
        if watch and not switched_off():
            return _watch(file, read, request, outputs, head=head is not None, full=full)
        pipeline = file if switched_off() else read()
        if shard is not None and isinstance(pipeline, PipelineFile):
            pipeline = pipeline.for_shard()
        if isinstance(pipeline, PipelineFile) and pipeline.is_suite:
            return _run_suite(
                pipeline, request, outputs, head=head is not None, has_lines=metric_lines, full=full, as_json=as_json
            )
        lines = _metric_lines(primary) if metric_lines else None
        return run_and_print(
            pipeline, lambda _: request, head=head is not None, lines=lines, outputs=outputs, full=full, as_json=as_json
        )


def _metric_lines(primary: str | None) -> RunLines:
    from .metric_lines import RunLines  # few runs need it

    return RunLines(primary)


def _watch(
    file: Path, read: Callable[[], PipelineFile], request: Request, outputs: Outputs, *, head: bool, full: bool
) -> int:
    """Run the pipeline again after each change of its files; return the last exit code."""
    from .rerun import run_again  # only --watch needs it

    def run_once(ask: Callable[[Pipeline], Request], find_next: Callable[[Mapping[str, Any]], str | None]) -> int:
        pipeline = read()
        if pipeline.is_suite:
            first = next(iter(pipeline.experiments))
            message = f"--watch is for one pipeline, and {file} has several experiments; name one: --experiment {first}"
            raise click.UsageError(message)
        return run_and_print(pipeline, ask, head=head, outputs=outputs, full=full, find_next=find_next, as_json=False)

    return run_again(file, request, run_once)


def selection(filters: Sequence[str], *, shard: Shard | None = None, experiment: str | None = None) -> list[str]:
    """Return the options that select the experiment and subjects, for a command that resumes the run. ``run.started`` records them."""
    options = {"--filter": filters, "--shard": [] if shard is None else [str(shard)]}
    options["--experiment"] = [] if experiment is None else [experiment]
    return [word for option, texts in options.items() for text in texts for word in (option, text)]


def unrecorded_options(ledger: Path | str | None, out: Sequence[Path] = (), *, yes: bool = False) -> list[str]:
    """Return the options that a command that resumes the run needs, and that ``run.started`` does not record."""
    place = [] if ledger is None else ["--ledger", without_password(ledger)]
    return [*place, *["--yes"] * yes, *(word for path in out for word in ("--out", str(path)))]


def _rules(filters: Sequence[str]) -> tuple[Condition | Failing, ...]:
    if not filters:
        return ()
    from ..source.filters import read_filters  # most runs have no filter

    return read_filters(filters)


def read_chosen(
    file: Path,
    overrides: Sequence[str],
    only: Sequence[str],
    outputs: Outputs,
    ledger: Path | str | None,
    experiment: str | None = None,
    *,
    resumed: bool = False,
) -> PipelineFile:
    """Return the pipeline *file*, or its *experiment*, for the labels *only*, with the sinks of *outputs*, and the ledger at *ledger* if it is given."""
    pipeline = read_pipeline(file, overrides)
    if experiment is not None:
        pipeline = pipeline.alone(experiment, resumed=resumed)
    outputs.check(pipeline.experiments if pipeline.is_suite else {})
    for sink in outputs.sinks:
        pipeline = pipeline.with_sink(sink, "--out")
    if ledger is not None:
        pipeline = pipeline.with_ledger(ledger)
    return attrs.evolve(pipeline, only=tuple(only)) if only else pipeline


def _run_suite(
    pipeline: PipelineFile,
    request: Request,
    outputs: Outputs,
    *,
    head: bool,
    has_lines: bool,
    full: bool,
    as_json: bool,
) -> int:
    """Run the experiments of *pipeline*, print the results, and return the exit code."""
    if has_lines:
        raise click.UsageError(
            f"--metric-lines is for one pipeline, and {pipeline.start.file} has several experiments; name one: --experiment NAME"
        )
    if request.shard is not None:
        raise click.UsageError(
            f"--shard is for one pipeline, and {pipeline.start.file} has several experiments; give each experiment a file of its own"
        )
    if request.filters and request.resume is not None:
        raise click.UsageError("a suite with --filter cannot be resumed; remove --resume to start a new one")
    if request.filters and request.command is not None:
        request = attrs.evolve(request, command=attrs.evolve(request.command, is_resumable=False))
    from ..run.suite import run_suite  # a single pipeline does not need it
    from .suites import suite_json, suite_parts

    with only_document(as_json), Progress() as progress:
        request = attrs.evolve(request, signals=True, progress=progress.update, preview=head)
        suite = in_loop(run_suite(pipeline, request, try_rows if head else run_unless_disabled))
    if as_json:
        print_json(suite_json(suite))
    else:
        print_lines(suite_parts(suite, full=full, reported=progress.notices))
    return outputs.write(suite_json(suite), suite.exit_code)


def run_and_print(
    file: PipelineFile | Path | str | Mapping[str, object],
    make_request: Callable[[Pipeline], Request],
    *,
    overrides: Sequence[str] = (),
    needs_source: bool = True,
    uncapped: bool = False,
    head: bool = False,
    lines: RunLines | None = None,
    outputs: Outputs | None = None,
    full: bool = False,
    find_next: Callable[[Mapping[str, Any]], str | None] | None = None,
    as_json: bool,
) -> int:
    """Run *file*, print the result, and return the exit code.

    :param file: the pipeline, read or unread.
    :param make_request: makes the request for the built pipeline.
    :param overrides: texts as after ``--set``, for an unread pipeline.
    :param needs_source: refuse a pipeline without a source.
    :param uncapped: ignore the caps per session and per day.
    :param head: also print the rows of the run.
    :param lines: print METRIC lines instead of the summary.
    :param outputs: files for the document of the run.
    :param full: print every figure instead of the summary on one screen.
    :param find_next: returns the next command for the document of the run; None for the usual next command.
    :param as_json: print the document of the run instead of the summary.
    """
    details: list[Figure] = []
    command: RunCommand | None = None
    with only_document(as_json or lines is not None), Progress() as progress:
        if not isinstance(file, PipelineFile) and switched_off():
            outcome = not_run(file)
        else:
            read = file if isinstance(file, PipelineFile) else read_pipeline(file, overrides)
            pipeline, experiments = build_pipeline(read, needs_source=needs_source), dict[str, str]()
            if read.chosen is not None:
                from ..run.suite import without_suite  # most runs are of no suite

                pipeline, experiments = without_suite(pipeline, read.experiments)
            if uncapped:
                pipeline = attrs.evolve(pipeline, budget=Budget(session=(), day=()))
            if lines is not None:
                lines.check(pipeline)
            request = make_request(pipeline)
            request = attrs.evolve(
                request,
                signals=True,
                progress=progress.update,
                experiments=experiments,
                preview=request.preview or head,
            )
            command = request.command and request.command.masked(pipeline)
            outcome = in_loop((try_rows if head else run_unless_disabled)(pipeline, request))
            details = [] if lines is None else in_loop(_details(pipeline, outcome.document["run_id"]))
    if as_json:
        print_json(outcome.document)
    elif lines is not None:
        click.echo(lines.text(outcome.document, details), nl=False)
    else:
        next_ = None if find_next is None else find_next(outcome.document)
        if full:
            print_lines([*run_parts(outcome.document, command), *([] if next_ is None else [f"next: {next_}"])])
        else:
            print_lines(screen_parts(outcome.document, command, next_command=next_, reported=progress.notices))
    return outcome.exit_code if outputs is None else outputs.write(outcome.document, outcome.exit_code)


async def _details(pipeline: Pipeline, run_id: str | None) -> list[Figure]:
    """Return the dimensions and secondary metrics of a run in the ledger."""
    from .metric_lines import detail_figures  # imported late, as in run

    if run_id is None:
        return []
    async with opening(ledger_slot(pipeline).component, None, create=False) as ledger:
        return detail_figures(ledger, run_id)


async def try_rows(pipeline: Pipeline, request: Request) -> RunOutcome:
    """Run *pipeline* without its sinks and its baseline; the document gets the rows of the run under ``head``."""
    from .head import head_rows  # few runs need a table

    pipeline = attrs.evolve(pipeline, sinks=(), baseline=None)
    outcome = await run_unless_disabled(pipeline, request)
    run_id = outcome.document["run_id"]
    rows: list[Row] = []
    if run_id is not None:
        async with opening(ledger_slot(pipeline).component, None, create=False) as ledger:
            rows = head_rows(ledger, run_id)
    return attrs.evolve(outcome, document={**outcome.document, "head": rows})


def run_command(
    pipeline: Path | str | Mapping[str, object],
    source: Callable[[Any], Any],
    *,
    overrides: Sequence[str] = (),
    live: bool = False,
    new: bool = False,
    override_caps: bool = False,
    kind: RunKind | None = None,
    as_json: bool = False,
) -> int:
    """Run a pipeline as ``dicast run`` does, for a command of a plugin: show progress, handle signals, print the result.

    :param pipeline: a file, YAML text, or a mapping; it needs no source section.
    :param source: makes the source from the component of the source section; it gets None if there is no such section.
    :param live: the source is a live source: an unfinished run of it is resumed, unless *new*.
    :param override_caps: ignore every cap of the budget in this run.
    :param kind: as for :func:`dicast.run`.
    :return: the exit code.
    :raises RequestError: when the request is invalid; nothing was judged or spent then.
    """

    def ask(built: Pipeline) -> Request:
        return Request(source=source(built.source and built.source.component), live=live, new=new, kind=kind)

    return run_and_print(
        as_source(pipeline), ask, overrides=overrides, needs_source=False, uncapped=override_caps, as_json=as_json
    )
