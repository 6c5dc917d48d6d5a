"""``dicast evaluator``: commands for evaluators and their authors."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson

from dicast import ConfigError, Due, Event, pipeline_judges, run
from dicast.commands import as_json as json_option
from dicast.commands import overrides as set_option
from dicast.commands import print_json, run_command
from dicast.toolkit.printable import one_line

from .result import ScoreRange, parsed, problem
from .served import BadPayload, NoScore, result, subject_of

if TYPE_CHECKING:
    from .conformance import Kind

TOKEN_ENV = "DICAST_EVALUATOR_TOKEN"  # noqa: S105 - the name of a variable

on_option = click.option(
    "--on", metavar="LABEL", help="The label whose score counts; by default the label of the run's score."
)
kind_option = click.option(
    "--kind", default="candidate", show_default=True, help="The candidates' kind of subject in the pipeline."
)


@click.group()
def evaluator() -> None:
    """Work with evaluators in any language."""


@evaluator.command()
@click.option(
    "--score-range", type=click.Choice(["unit", "any"]), default="unit", show_default=True, help="The range of scores."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def validate(score_range: ScoreRange, *, as_json: bool) -> None:
    """Check an evaluator's result on standard input: exit code 0 if it is valid, else 2.

    Scoring and the preflight apply the same rule.
    """
    try:
        message = problem(parsed(sys.stdin.buffer.read()), score_range)
    except ValueError as error:
        message = f"evaluator output is not valid JSON: {error}"
    if as_json:
        document = {
            "ok": message is None,
            "error": None if message is None else {"kind": "evaluator", "message": message},
        }
        click.echo(orjson.dumps(document).decode())
    elif message is not None:
        click.echo(f"Error: {message}", err=True)
    else:
        click.echo("valid")
    if message is not None:
        raise click.exceptions.Exit(2)


@evaluator.command()
@click.argument("file", type=click.Path(path_type=Path))
@on_option
@kind_option
@set_option
def stdin(file: Path, on: str | None, kind: str, overrides: tuple[str, ...]) -> int:
    """Judge the payload on standard input with the pipeline FILE, and print its result.

    This makes a pipeline a command evaluator. Exit codes: 0 with a result, 1 if the candidate could not be scored, 2 for an invalid payload or
    pipeline. In the last two cases stdout has {"error": ...}.
    """
    events: list[Event] = []
    try:
        subject = subject_of(parsed(sys.stdin.buffer.read()), kind)
    except (BadPayload, ValueError) as error:
        return _failed("payload", str(error), 2)
    try:
        on = _label(file, overrides, on)
    except ConfigError as error:
        return _failed("pipeline", "\n".join(str(problem) for problem in error.problems), 2)
    done = run(file, overrides=overrides, subjects=[Due(subject, answered=events.extend)], kind="evaluate")
    if done.disabled:
        return _failed("disabled", "judging is switched off (disabled, DICAST_DISABLED): nothing was scored", 1)
    if done.stopped is not None and not events:
        return _failed("stopped", f"the run was stopped: {done.stopped.get('error') or done.stopped['reason']}", 1)
    try:
        document = result(events, on)
    except NoScore as error:
        return _failed(error.kind, str(error), 1)
    click.echo(orjson.dumps(document, default=str).decode())
    return 0


@evaluator.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="The port; 0 takes a free port."
)
@click.option(
    "--token",
    metavar="TOKEN",
    help=f"The token of requests. Prefer ${TOKEN_ENV}: other users can see a command's arguments.",
)
@on_option
@kind_option
@set_option
@json_option
def serve(
    file: Path,
    host: str,
    port: int,
    token: str | None,
    on: str | None,
    kind: str,
    overrides: tuple[str, ...],
    as_json: bool,
) -> int:
    """Serve the pipeline FILE as an evaluator: POST / (a payload), POST /batch (an array of payloads), GET /health.

    All candidates belong to one run, with the ledger and the caps of the file; its source, if any, is not read. The server runs until
    Ctrl-C or SIGTERM, and then prints the run's summary. An address that other machines can reach needs a token.
    """
    from .serving import Serving, is_loopback  # importing aiohttp is slow

    token = token or os.environ.get(TOKEN_ENV) or None
    if token is None and not is_loopback(host):
        raise ConfigError(f"{host} can be reached from other machines: set a token in {TOKEN_ENV}")

    on = _label(file, overrides, on)

    def ready(address: str) -> None:
        click.echo(f"serving {one_line(str(file))} at {address}", err=True)

    def source(_: Any) -> Serving:
        return Serving(host, port, token, kind, on, ready)

    return run_command(file, source, overrides=overrides, live=True, new=True, as_json=as_json)


def _label(file: Path, overrides: tuple[str, ...], on: str | None) -> str | None:
    """Return the label whose score counts: *on*, else the label of the run's score. It is None if judging is disabled.

    :raises ConfigError: when the pipeline has several labels and neither names one.
    """
    if on is not None or os.environ.get("DICAST_DISABLED", "") not in ("", "0"):
        return on
    judges = pipeline_judges(file, overrides)
    if judges.score_label is None and len(judges.labels) > 1:
        raise ConfigError(f"{file} has several labels: choose one with --on: {', '.join(judges.labels)}")
    return judges.score_label


def _failed(kind: str, message: str, code: int) -> int:
    click.echo(orjson.dumps({"error": {"kind": kind, "message": message}}).decode())
    click.echo(f"Error: {message}", err=True)
    return code


@click.command()
@click.argument("kind", type=click.Choice(["command", "http", "worker"]))
@click.argument("target")
@click.option("--score-range", type=click.Choice(["unit", "any"]), default="unit", show_default=True)
@click.option("--timeout", type=float, default=30.0, show_default=True, help="Time limit of one answer in seconds.")
@click.option("--markdown", "report", is_flag=True, help="Print a report in Markdown.")
@json_option
def conformance(
    kind: Kind, target: str, score_range: ScoreRange, timeout: float, *, report: bool, as_json: bool
) -> int:
    """Test an evaluator with all payload kinds.

    TARGET is a command in quotes, or an address. The payloads cover the whole protocol. The report has each request, the reply and the tested
    rule. Exit codes: 0 if every rule holds, 1 if a rule is broken, 2 if TARGET never answers.
    """
    from . import conformance as kit

    tried = kit.Target(kind, target, timeout, score_range)
    cases = asyncio.run(kit.conformance(tried))
    kit.refuse_unreachable(cases, tried)
    document = kit.document(cases)
    if as_json:
        print_json(document)
    elif report:
        click.echo(kit.markdown(tried, cases))
    else:
        for case in cases:
            click.echo(f"{'ok    ' if case.ok else 'FAILED'}  {case.name}: {case.rule}")
            if not case.ok:
                click.echo(f"        sent      {one_line(case.sent)}")
                click.echo(f"        received  {one_line(case.received) or '(nothing)'}")
                click.echo(f"        wrong     {one_line(case.message)}")
    return 0 if document["ok"] else 1
