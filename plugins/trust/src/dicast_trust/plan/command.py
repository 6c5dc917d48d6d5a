"""``dicast plan``: forecast the calls, cost and time of a run before it is started."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

import attrs
import click

from dicast import ConfigError, Cost, InvalidCost, Ledger, Query, prospect, started_runs
from dicast.commands import as_json, overrides, print_json, requires
from dicast.reading import refuse_weights, resume_command
from dicast.toolkit.terminal import Part, print_lines

from ..terminal.options import rate
from .document import Plan
from .request import PlanRequest
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
    help="Judge N subjects first. This costs money; the run can be resumed.",
)
@click.option(
    "--solve",
    type=click.Choice(["n", "budget", "audit"]),
    help="Solve for the number of subjects, the budget, or the rate of audits.",
)
@click.option(
    "--width",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="W",
    help="Width of the interval; with --solve audit its half width.",
)
@click.option("--budget", callback=_money, metavar="AMOUNT", help="Available money, such as '5.00 usd'.")
@click.option(
    "--difference",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="D",
    help="Difference from the baseline to detect.",
)
@click.option(
    "--power",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.8,
    show_default=True,
    help="Probability of detecting the difference.",
)
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.9,
    show_default=True,
    help="Probability that the cost lies within its range.",
)
@click.option(
    "--scale",
    is_flag=True,
    help="Also estimate 10^6, 10^8 and 10^9 verdicts: judges without cost are measured on some of the subjects.",
)
@click.option("--labels", is_flag=True, help="Report the number of labels that a calibration needs, at the --rates.")
@click.option(
    "--rates",
    metavar="SHARE:ERROR,…",
    help="With --labels: error rates of a stage for shares of subjects, in descending order of confidence.",
)
@click.option(
    "--target", default=0.9, show_default=True, callback=rate, help="With --labels: target of the calibration."
)
@click.option("--alpha", default=0.1, show_default=True, callback=rate, help="With --labels: alpha of the calibration.")
@overrides
@as_json
@requires(rates="labels", target="labels", alpha="labels")
def plan(
    file: Path | None,
    labels: bool,
    rates: str | None,
    target: float,
    alpha: float,
    overrides: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Forecast a run of FILE. The forecast has its calls, cost and time, and the width of its interval.

    The forecast uses the paid rows of an earlier run of FILE or of a pilot. Without them it reports the greatest cost of the run. Only the pilot costs money.
    """
    if labels:
        from .labels import labels_document, labels_lines

        document: Mapping[str, Any] = labels_document(rates, target, alpha)
        lines: Iterable[Part] = labels_lines(document)
    else:
        if file is None:
            raise click.UsageError("FILE is missing: name the pipeline, as in dicast plan FILE")
        document = make_plan(PlanRequest(file, overrides, **options))
        lines = plan_lines(document)
        if "scale" in document:
            from .scale import scale_parts

            lines = chain(lines, scale_parts(document["scale"]))
    if as_json:
        print_json(document)
    else:
        print_lines(lines)


def make_plan(request: PlanRequest) -> dict[str, Any]:
    """Make the plan, and record it in the ledger.

    :raises ConfigError: if the request is invalid, which is found before the pilot starts, or if the pilot did not complete.
    """
    request.check()
    subject = prospect(request.file, request.overrides)
    if subject.label is None and len(subject.labels) > 1:
        names = ", ".join(subject.labels)
        raise ConfigError(
            f"{request.file} has several labels ({names}), but a plan is about one: choose it with --set gate.on=LABEL"
        )
    if subject.is_raw:
        message = f"{request.file}: {subject.label} has its own scale, but a plan needs scores in [0, 1]"
        raise ConfigError(f"{message}: give the metric a range, as in range: [0, 100]")
    if request.pilot:
        stopped = subject.pilot(request.pilot).document["stopped"]
        if stopped is not None and stopped["reason"] not in ("paused", "early_stop"):
            raise ConfigError(f"the pilot did not complete: {stopped['reason']}; fix the cause, then plan again")
    with closing(PlanRows(subject.label)) as rows:
        earlier = subject.read(lambda ledger: _unweighted(ledger, find_earlier(ledger, subject, rows))) or Earlier()
        sizes = Sizes(rows, subject.kinds)
        data = subject.visit(sizes.add).data
        setup = {**subject.setup, **({} if data is None else {"data": data})}
        earlier = attrs.evolve(earlier, can_resume=earlier.setup == setup and earlier.resume_command is not None)
        plan = Plan(request, subject, earlier, rows, sizes)
        document = plan.document()
        if request.scale:
            from .scale import scale_document

            document["scale"] = scale_document(plan)
    subject.record(document, data)
    return document


def _unweighted(ledger: Ledger, earlier: Earlier | None) -> Earlier | None:
    """Return *earlier*.

    :raises ConfigError: if its subjects have weights.
    """
    if earlier is not None and earlier.run_id is not None:
        refuse_weights(ledger, (earlier.run_id,), "a plan")
    return earlier


def find_earlier(ledger: Ledger, subject: Any, rows: PlanRows) -> Earlier | None:
    """Return the newest run of the same file with verdicts of the same judges, and read its rows into *rows*; None if there is none."""
    for entry in started_runs(ledger.read):
        started: Mapping[str, Any] = entry.event.payload
        if started.get("file") != subject.file or started.get("preview") or not _is_alike(started, subject):
            continue
        run_id = entry.event.run_id
        judged = Query(run_id=run_id, types=("eval.completed", "record.completed"), limit=1)
        if next(iter(ledger.read(judged)), None) is None:
            continue
        rows.read(ledger, run_id)
        completed = next(
            iter(ledger.read(Query(run_id=run_id, types=("run.completed",), newest_first=True, limit=1))), None
        )
        setup = started.get("setup") if completed is None else None
        result: Mapping[str, Any] = {} if completed is None else completed.event.payload
        command = resume_command(started, run_id, ledger)
        return Earlier(run_id, setup, _audit(result), result.get("baseline"), resume_command=command)
    return None


def _audit(result: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the figures of the audits in a run's document; documents without ``labels`` have them in ``score``."""
    label = (result.get("labels") or {}).get("metrics") or result.get("score") or {}
    audit: Mapping[str, Any] | None = label.get("audit")
    return audit


_JUDGING = ("metrics[", "judges[", "extractors[", "task", "scoring")
"""Prefixes of the fingerprints that decide how a run judges."""


def _is_alike(started: Mapping[str, Any], subject: Any) -> bool:
    """Return whether a run judged in the same way as *subject*; the source may differ."""
    fingerprints = started.get("fingerprints", {})
    expected = {key: value for key, value in subject.fingerprints.items() if key.startswith(_JUDGING)}
    return expected == {key: value for key, value in fingerprints.items() if key.startswith(_JUDGING)}
