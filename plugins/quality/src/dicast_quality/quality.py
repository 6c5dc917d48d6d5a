"""``dicast quality``: quality of the judged work by model, kind of judge or rubric."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import orjson

from dicast import Ledger, read_ledger
from dicast.commands import as_json, ledger_path
from dicast.toolkit.printable import one_line

from .options import moment, share
from .report import QualityOptions
from .verdicts import GROUPINGS, Grouping

DAYS = 7
KINDS = ("turn", "tool_cycle", "session", "workload", "row", "candidate")
"""The built-in subject kinds."""


@click.command()
@click.option("--group-by", "group", type=click.Choice(GROUPINGS), default="model", show_default=True)
@click.option(
    "--subject-kind", "kind", metavar="KIND", default="turn", show_default=True, help="The kind of the judged subjects."
)
@click.option(
    "--from", "start", metavar="TIME", callback=moment, help=f"From this time on; {DAYS} days before --to by default."
)
@click.option("--to", "end", metavar="TIME", callback=moment, help="Before this time; now by default.")
@click.option(
    "--min-confidence",
    type=float,
    callback=share,
    default=0.0,
    help="The least confidence of a verdict in mean, p50 and p10; 0 by default.",
)
@click.option("--floor", type=float, callback=share, default=0.6, show_default=True, help="The lowest acceptable mean.")
@click.option("--judge", "labels", multiple=True, metavar="LABEL", help="Only this judge; may be repeated.")
@click.option("--run", "run_id", metavar="RUN", help="Only this run.")
@click.option("--without-human", "without_people", is_flag=True, help="Exclude people's verdicts from the figures.")
@click.option("--latest", is_flag=True, help="Only the newest verdict of each judge on each subject.")
@ledger_path
@as_json
def quality(
    group: Grouping,
    kind: str,
    start: datetime | None,
    end: datetime | None,
    min_confidence: float,
    floor: float,
    labels: tuple[str, ...],
    run_id: str | None,
    without_people: bool,
    latest: bool,
    ledger: Path | str | None,
    as_json: bool,
) -> None:
    """Report the quality of the judged work. The figures are the mean score, the median, the lowest tenth, and the cost of judging."""
    options = QualityOptions.about(
        group, kind, start, end, min_confidence, floor, labels, latest=latest, without_people=without_people
    )
    report = read_ledger(ledger, lambda live: options.read(live, run_id))
    if as_json:
        click.echo(orjson.dumps(report.document(), option=orjson.OPT_INDENT_2))
        return
    for line in report.lines():
        click.echo(one_line(line))
    if report.elsewhere is not None:
        click.echo(report.elsewhere, err=True)


def read_quality(
    ledger: Ledger,
    *,
    group_by: Grouping = "model",
    subject_kind: str = "turn",
    start: datetime | None = None,
    end: datetime | None = None,
    min_confidence: float = 0.0,
    floor: float = 0.6,
    judge: Sequence[str] = (),
    run: str | None = None,
    without_human: bool = False,
    latest: bool = False,
    saved: bool = False,
) -> dict[str, Any]:
    """Return the document that ``dicast quality --json`` prints for *ledger*.

    With *saved* each row also has ``judge_cost_usd_saved``, a Decimal or null.

    :raises ConfigError: when the window is empty, or the ledger has no such run, judge or kind.
    """
    options = QualityOptions.about(
        group_by, subject_kind, start, end, min_confidence, floor, judge, latest=latest, without_people=without_human
    )
    return options.read(ledger, run, saved=saved).document()
