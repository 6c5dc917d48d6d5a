"""``dicast evaluator``: what evaluators and those who write them need on the command line."""

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
    "--on", metavar="LABEL", help="The label whose score counts: by default that of the run's score."
)
kind_option = click.option(
    "--kind", default="candidate", show_default=True, help="The kind of subject that a candidate is to the pipeline."
)


@click.group()
def evaluator() -> None:
    """Work with evaluators in any language."""


@evaluator.command()
@click.option(
    "--score-range", type=click.Choice(["unit", "any"]), default="unit", show_default=True, help="What scores may be."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def validate(score_range: ScoreRange, *, as_json: bool) -> None:
    """Read an evaluator's result from standard input; exit code 0 where it is valid, else 2.

    The rule is that of scoring and of the preflight.
    """
    try:
        found = problem(parsed(sys.stdin.buffer.read()), score_range)
    except ValueError as error:
        found = f"evaluator output is not valid JSON: {error}"
    if as_json:
        document = {"ok": found is None, "error": None if found is None else {"kind": "evaluator", "message": found}}
        click.echo(orjson.dumps(document).decode())
    elif found is not None:
        click.echo(f"Error: {found}", err=True)
    else:
        click.echo("valid")
    if found is not None:
        raise click.exceptions.Exit(2)


@evaluator.command()
@click.argument("file", type=click.Path(path_type=Path))
@on_option
@kind_option
@set_option
def stdin(file: Path, on: str | None, kind: str, overrides: tuple[str, ...]) -> int:
    """Judge the payload on standard input with the pipeline FILE, and print its result.

    So a pipeline is a command evaluator. Exit codes: 0 with a result, 1 where the candidate could not be scored, 2 for a payload or a
    pipeline that is none; stdout has {"error": ...} then.
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
        found = result(events, on)
    except NoScore as error:
        return _failed(error.kind, str(error), 1)
    click.echo(orjson.dumps(found, default=str).decode())
    return 0


@evaluator.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0: any that is free.")
@click.option(
    "--token",
    metavar="TOKEN",
    help=f"What requests must bear; better given by ${TOKEN_ENV}, as others see a command's words.",
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
    """Serve the pipeline FILE as an evaluator: POST / (a payload), POST /batch (an array of them), GET /health.

    All candidates belong to one run, with the ledger and the caps of the file; its source, if it has one, is not read. It goes on until
    Ctrl-C or SIGTERM, and prints what the run came to. An address that other machines reach needs a token.
    """
    from .serving import Serving, is_loopback  # aiohttp takes a while to import

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
    """Return the label whose score counts: *on*, else that of the run's score; None where judging is switched off.

    :raises ConfigError: where the file has several labels and none of them is named.
    """
    if on is not None or os.environ.get("DICAST_DISABLED", "") not in ("", "0"):
        return on
    judges = pipeline_judges(file, overrides)
    if judges.score_label is None and len(judges.labels) > 1:
        raise ConfigError(f"{file} has several labels: say with --on whose score counts, of {', '.join(judges.labels)}")
    return judges.score_label


def _failed(kind: str, message: str, code: int) -> int:
    click.echo(orjson.dumps({"error": {"kind": kind, "message": message}}).decode())
    click.echo(f"Error: {message}", err=True)
    return code


@click.command()
@click.argument("kind", type=click.Choice(["command", "http", "worker"]))
@click.argument("target")
@click.option("--score-range", type=click.Choice(["unit", "any"]), default="unit", show_default=True)
@click.option("--timeout", type=float, default=30.0, show_default=True, help="Seconds that one answer may take.")
@click.option("--markdown", "report", is_flag=True, help="Print a report in Markdown.")
@json_option
def conformance(
    kind: Kind, target: str, score_range: ScoreRange, timeout: float, *, report: bool, as_json: bool
) -> int:
    """Try an evaluator with every payload.

    TARGET is a command in quotes, or an address; the payloads are those that the protocol allows. Prints what was sent, what came back and which rule it is about. Exit codes: 0 where every rule holds, 1 where one does not, 2 where
    TARGET never answers.
    """
    from . import conformance as kit

    tried = kit.Target(kind, target, timeout, score_range)
    cases = asyncio.run(kit.conformance(tried))
    kit.refuse_unreachable(cases, tried)
    found = kit.document(cases)
    if as_json:
        print_json(found)
    elif report:
        click.echo(kit.markdown(tried, cases))
    else:
        for case in cases:
            click.echo(f"{'ok    ' if case.ok else 'FAILED'}  {case.name}: {case.rule}")
            if not case.ok:
                click.echo(f"        sent      {one_line(case.sent)}")
                click.echo(f"        received  {one_line(case.received) or '(nothing)'}")
                click.echo(f"        wrong     {one_line(case.message)}")
    return 0 if found["ok"] else 1
