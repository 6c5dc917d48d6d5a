"""``dicast plan``: what a run is going to take, said before it is bought."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import click
from click.core import ParameterSource

from dicast import ConfigError, Cost, InvalidCost, Ledger, Query, prospect, started_runs
from dicast.commands import as_json, overrides, print_json
from dicast.toolkit.terminal import print_lines

from ..terminal.options import rate
from .document import Plan
from .request import Asked
from .rows import PlanRows
from .sizes import Earlier, Sizes
from .text import plan_lines


def _money(_context: click.Context, _option: click.Parameter, text: str | None) -> Cost | None:
    try:
        return None if text is None else Cost.parse(text)
    except InvalidCost as error:
        raise click.BadParameter(str(error)) from error


@click.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option(
    "--pilot",
    type=click.IntRange(0),
    metavar="N",
    help="Judge N subjects first, which costs money; the run can be resumed.",
)
@click.option(
    "--solve",
    type=click.Choice(["n", "budget", "audit"]),
    help="What is sought: how many subjects, how much money, which rate of audits.",
)
@click.option(
    "--width",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="W",
    help="Of an interval of this width; with audit the mean plus or minus it.",
)
@click.option("--budget", callback=_money, metavar="AMOUNT", help="For so much money, such as '5.00 usd'.")
@click.option(
    "--difference",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="D",
    help="For a difference from the baseline that is to show.",
)
@click.option(
    "--power",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.8,
    show_default=True,
    help="How often it is to show.",
)
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.9,
    show_default=True,
    help="How often the cost lies within its range.",
)
@click.option("--labels", is_flag=True, help="How many labels a calibration needs, at the --rates.")
@click.option(
    "--rates",
    metavar="SHARE:ERROR,…",
    help="With --labels: how often a stage is wrong, for shares of subjects, surest first.",
)
@click.option("--target", default=0.9, show_default=True, callback=rate, help="With --labels: that of the calibration.")
@click.option("--alpha", default=0.1, show_default=True, callback=rate, help="With --labels: that of the calibration.")
@overrides
@as_json
def plan(
    file: Path | None,
    labels: bool,
    rates: str | None,
    target: float,
    alpha: float,
    overrides: tuple[str, ...],
    as_json: bool,
    **asked: Any,
) -> None:
    """Say what a run is going to take. Of FILE: calls, money, time, and how wide its interval will be.

    It goes by the rows that an earlier run of FILE, or a pilot, has paid for; without any it says what the run may cost at most. Nothing is bought but the pilot.
    """
    if labels:
        from .labels import labels_document, labels_lines

        found: Mapping[str, Any] = labels_document(rates, target, alpha)
        lines = labels_lines(found)
    else:
        _check_labels()
        if file is None:
            raise click.UsageError("a plan is made for a pipeline: dicast plan FILE")
        found = make_plan(Asked(file, overrides, **asked))
        lines = plan_lines(found)
    if as_json:
        print_json(found)
    else:
        print_lines(lines)


def _check_labels() -> None:
    """See that nothing that only --labels goes by was given without it.

    :raises UsageError: naming the option that was.
    """
    source = click.get_current_context().get_parameter_source
    for name in ("rates", "target", "alpha"):
        if source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} is for --labels: add that, or leave it out")


def make_plan(asked: Asked) -> dict[str, Any]:
    """Make the plan, and keep it in the ledger.

    :raises ConfigError: when the request is wrong; nothing was bought then.
    """
    asked.check()
    subject = prospect(asked.file, asked.overrides)
    if subject.label is None and len(subject.labels) > 1:
        names = ", ".join(subject.labels)
        raise ConfigError(
            f"{asked.file} has several labels ({names}), and a plan is about one: say which with --set gate.on=LABEL"
        )
    if subject.is_raw:
        message = f"{asked.file}: {subject.label} is on a scale of its own, and a plan is about scores in [0, 1]"
        raise ConfigError(f"{message}: give the metric a range, as in range: [0, 100]")
    if asked.pilot:
        stopped = subject.pilot(asked.pilot).document["stopped"]
        if stopped is not None and stopped["reason"] not in ("paused", "early_stop"):
            raise ConfigError(f"the pilot did not end in order: {stopped['reason']}")
    with closing(PlanRows(subject.label)) as rows:
        earlier = subject.read(lambda ledger: find_earlier(ledger, subject, rows)) or Earlier()
        sizes = Sizes(rows, subject.kinds)
        data = subject.visit(sizes.add).data
        setup = {**subject.setup, **({} if data is None else {"data": data})}
        earlier = attrs.evolve(earlier, goes_on=earlier.setup == setup)
        found = Plan(asked, subject, earlier, rows, sizes).document()
    subject.record(found, data)
    return found


def find_earlier(ledger: Ledger, subject: Any, rows: PlanRows) -> Earlier | None:
    """The newest run of the same file that judged anything in the same way, which *rows* takes; None where there is none."""
    for entry in started_runs(ledger.read):
        begun: Mapping[str, Any] = entry.event.payload
        if begun.get("file") != subject.file or begun.get("preview") or not _is_alike(begun, subject):
            continue
        run_id = entry.event.run_id
        judged = Query(run_id=run_id, types=("eval.completed", "record.completed"), limit=1)
        if next(iter(ledger.read(judged)), None) is None:
            continue
        rows.read(ledger, run_id)
        ended = next(
            iter(ledger.read(Query(run_id=run_id, types=("run.completed",), newest_first=True, limit=1))), None
        )
        setup = begun.get("setup") if ended is None else None
        done: Mapping[str, Any] = {} if ended is None else ended.event.payload
        return Earlier(run_id, setup, _audit(done), done.get("baseline"))
    return None


def _audit(done: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the figures of the audits in a run's document; documents without ``labels`` have them in ``score``."""
    label = (done.get("labels") or {}).get("metrics") or done.get("score") or {}
    found: Mapping[str, Any] | None = label.get("audit")
    return found


_JUDGING = ("metrics[", "judges[", "extractors[", "task", "scoring")


def _is_alike(begun: Mapping[str, Any], subject: Any) -> bool:
    """Whether a run judged as *subject* does: the source may be another."""
    before = begun.get("fingerprints", {})
    mine = {key: value for key, value in subject.fingerprints.items() if key.startswith(_JUDGING)}
    return mine == {key: value for key, value in before.items() if key.startswith(_JUDGING)}
