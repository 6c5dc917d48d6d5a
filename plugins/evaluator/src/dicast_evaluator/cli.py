"""``dicast evaluator``: what evaluators and those who write them need on the command line."""

from __future__ import annotations

import sys

import click
import orjson

from .result import ScoreRange, parsed, problem


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
