"""The command ``dicast workloads``: the results of a suite's runs, from a ledger."""

from __future__ import annotations

from pathlib import Path

import click
import orjson

from dicast import read_ledger
from dicast.commands import ledger_path
from dicast.toolkit.printable import one_line

from .judged import read
from .report import Report


@click.command()
@click.option(
    "--run",
    "run_ids",
    metavar="RUN",
    multiple=True,
    default=("last",),
    help="The run that judged the workloads; repeatable. Default: the newest run.",
)
@click.option("--judge", metavar="LABEL", help="The judge whose verdicts count, if there are several.")
@click.option("--workload", "only", metavar="NAME", multiple=True, help="Only this workload; repeatable.")
@ledger_path
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document to stdout and nothing else.")
def workloads(
    run_ids: tuple[str, ...], judge: str | None, only: tuple[str, ...], ledger: Path | str | None, as_json: bool
) -> None:
    """Report on judged workloads. Prints quality and its spread by workload and model, cost, savings on successful work."""
    report = Report.of(read_ledger(ledger, lambda live: read(live, run_ids, judge, only)))
    if as_json:
        click.echo(orjson.dumps(report.document(), option=orjson.OPT_INDENT_2))
        return
    for line in report.lines():
        click.echo(one_line(line))
