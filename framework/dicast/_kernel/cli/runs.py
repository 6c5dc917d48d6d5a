"""The command ``dicast run``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from ...toolkit.terminal import print_lines
from ..api.runs import as_source, not_run, run_unless_disabled, switched_off
from ..pipeline.build import build_pipeline
from ..pipeline.read import PipelineFile, read_pipeline
from ..pipeline.slots import ledger_slot
from ..plan.sections import Budget, Pipeline
from ..resume.open_runs import RunCommand
from ..run.run import Request, RunOutcome
from ..timing.event_loop import in_loop
from .head import Row, head_rows
from .metric_lines import Figure, RunLines, detail_figures
from .options import as_json, overrides
from .output import MOST, only_document, print_json
from .progress import Progress
from .summary import run_parts

if TYPE_CHECKING:
    from ..api.runs import RunKind


@click.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--limit", type=click.IntRange(0, MOST), metavar="N", help="Read at most N subjects.")
@click.option(
    "--head", type=click.IntRange(1, MOST), metavar="N", help="Try N subjects: show their rows and write no sink."
)
@overrides
@click.option(
    "--resume",
    is_flag=False,
    flag_value="",
    metavar="[RUN_ID]",
    help="Resume the newest unfinished run of this file and name, or the run with this id.",
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
@as_json
def run(
    file: Path | None,
    limit: int | None,
    head: int | None,
    overrides: tuple[str, ...],
    resume: str | None,
    retry_failed: bool,
    cancel_batches: bool,
    yes: bool,
    metric_lines: bool,
    primary: str | None,
    as_json: bool,
) -> int:
    """Judge the subjects of the pipeline FILE. Exit codes: 0 passed, 1 gate failed, 2 invalid request, 3 undecided, 4 data lost in a sink
    or the ledger, 5 no budget for any judge, 70 a defect in dicast, 130 interrupted.
    """
    if file is None and resume:  # dicast run --resume FILE: the id is optional, so the value is the file
        file, resume = Path(resume), ""
    if file is None:
        raise click.UsageError("Missing argument 'FILE': dicast run FILE")
    if head is not None and (limit is not None or resume is not None):
        raise click.UsageError("--head N starts a separate run of N subjects; remove --limit and --resume")
    if metric_lines and (as_json or head is not None):
        raise click.UsageError("--metric-lines prints METRIC lines alone; remove --json and --head")
    if primary is not None and not metric_lines:
        raise click.UsageError("--primary applies to METRIC lines; add --metric-lines")
    number = limit if head is None else head
    command = RunCommand(str(file), overrides, ["--yes"] if yes else [])
    request = Request(number, resume, retry_failed, trusts_all=yes, cancel_batches=cancel_batches, command=command)
    pipeline = file if switched_off() else read_pipeline(file, overrides)
    if isinstance(pipeline, PipelineFile) and pipeline.experiments:
        if metric_lines:
            raise click.UsageError(f"--metric-lines is for one pipeline, and {file} has several experiments")
        from ..run.suite import run_suite  # a single pipeline does not need it
        from .suites import suite_json, suite_parts

        run_one = run_unless_disabled if head is None else try_rows
        with only_document(as_json), Progress() as progress:
            request = attrs.evolve(request, signals=True, progress=progress.update, preview=head is not None)
            suite = in_loop(run_suite(pipeline, request, run_one))
        if as_json:
            print_json(suite_json(suite))
        else:
            print_lines(suite_parts(suite))
        return suite.exit_code
    lines = RunLines(primary) if metric_lines else None
    return run_and_print(pipeline, lambda _: request, head=head is not None, lines=lines, as_json=as_json)


def run_and_print(
    file: PipelineFile | Path | str | Mapping[str, object],
    make_request: Callable[[Pipeline], Request],
    *,
    overrides: Sequence[str] = (),
    needs_source: bool = True,
    uncapped: bool = False,
    head: bool = False,
    lines: RunLines | None = None,
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
    :param as_json: print the document of the run instead of the summary.
    """
    details: list[Figure] = []
    command: RunCommand | None = None
    with only_document(as_json or lines is not None), Progress() as progress:
        if not isinstance(file, PipelineFile) and switched_off():
            outcome = not_run(file)
        else:
            read = file if isinstance(file, PipelineFile) else read_pipeline(file, overrides)
            pipeline = build_pipeline(read, needs_source=needs_source)
            if uncapped:
                pipeline = attrs.evolve(pipeline, budget=Budget(session=(), day=()))
            if lines is not None:
                lines.check(pipeline)
            request = attrs.evolve(make_request(pipeline), signals=True, progress=progress.update)
            command = request.command and request.command.masked(pipeline)
            outcome = in_loop((try_rows if head else run_unless_disabled)(pipeline, request))
            details = [] if lines is None else in_loop(_details(pipeline, outcome.document["run_id"]))
    if as_json:
        print_json(outcome.document)
    elif lines is not None:
        click.echo(lines.text(outcome.document, details), nl=False)
    else:
        print_lines(run_parts(outcome.document, command))
    return outcome.exit_code


async def _details(pipeline: Pipeline, run_id: str | None) -> list[Figure]:
    """Return the dimensions and secondary metrics of a run in the ledger."""
    if run_id is None:
        return []
    async with ledger_slot(pipeline).component.open(None, create=False) as ledger:
        return detail_figures(ledger, run_id)


async def try_rows(pipeline: Pipeline, request: Request) -> RunOutcome:
    """Run *pipeline* without its sinks and its baseline; the document gets the rows of the run under ``head``."""
    pipeline = attrs.evolve(pipeline, sinks=(), baseline=None)
    outcome = await run_unless_disabled(pipeline, request)
    run_id = outcome.document["run_id"]
    rows: list[Row] = []
    if run_id is not None:
        async with ledger_slot(pipeline).component.open(None, create=False) as ledger:
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
