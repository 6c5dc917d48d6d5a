"""``dicast runs``: the runs of a ledger, from what is recorded of their beginnings and ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, time
from itertools import islice
from pathlib import Path
from typing import Any

import click

from ...toolkit.money import amount_text
from ...toolkit.terminal import print_lines
from ...toolkit.text_table import TextTable
from ..api.runs import read_ledger
from ..contract.protocols import Ledger
from ..events import RUN_COMPLETED, RUN_STOPPED
from ..leases.leases import live_run_check
from ..leases.leasing import Leasing
from ..report.batches import waiting_batches
from ..report.older import current_document
from ..resume.named_runs import run_kind, started_runs
from ..values import BASES, Event, Query
from .gate_summary import gate_answer
from .options import as_json, ledger_path
from .output import MOST, print_json
from .records import utc
from .summary import short_run

_OF_A_LABEL = ("mean", "pass_rate", "scored", "failed", "total")
"""The figures of each label that a listed run has."""

Listed = dict[str, Any]
"""A run as ``dicast runs --json`` lists it."""


@click.command()
@click.option("--name", metavar="NAME", help="Only runs of the pipeline with this name.")
@click.option("--since", metavar="TIME", help="Only runs that began at this ISO 8601 time or later.")
@click.option("--limit", type=click.IntRange(0, MOST), default=20, show_default=True, metavar="N", help="At most N.")
@ledger_path
@as_json
def runs(name: str | None, since: str | None, limit: int, ledger: Path | None, as_json: bool) -> None:
    """List the runs of the ledger, the one that began last first. Commands take a run by its id, the first or last characters of it, or its name."""
    least = None if since is None else utc(since, "--since", time.min)
    found = read_ledger(ledger, lambda live: list(islice(past_runs(live, name, least), limit)))
    if as_json:
        print_json({"runs": found})
    elif found:
        print_lines([runs_table(found)])
    else:
        click.echo("no runs found", err=True)


def past_runs(ledger: Ledger, name: str | None = None, since: str | None = None) -> Iterator[Listed]:
    """The runs of the pipeline *name* that began at *since* or later, by default all; the one that began last first."""
    is_held, now = _held(ledger), datetime.now(UTC).isoformat()
    for entry in started_runs(ledger.read, tools=True):
        begun = entry.event
        if name in (None, begun.payload["name"]) and (since is None or begun.time >= since):
            ended = Query(begun.run_id, (RUN_COMPLETED, RUN_STOPPED), newest_first=True, limit=1)
            end = next((each.event for each in ledger.read(ended)), None)
            listed = _listed(begun, end, held=is_held(begun.run_id))
            waits = listed["state"] != "completed" and waiting_batches(ledger.read, begun.run_id, now)
            yield {**listed, "state": "waiting", "batches": waits} if waits else listed


def _held(ledger: Ledger) -> Callable[[str], bool]:
    """Tells whether a process carries out the run of an id; in a ledger that keeps no leases that is not known, and denied."""
    alive = live_run_check(ledger)
    return lambda run_id: isinstance(ledger, Leasing) and ledger.lease_of(run_id) is not None and alive(run_id)


def _listed(begun: Event, end: Event | None, *, held: bool) -> Listed:
    if held:
        state, end = "running", None
    elif end is None:
        state = "dead"
    else:
        state = "completed" if end.type == RUN_COMPLETED else "stopped"
    done: Any = {} if end is None else current_document(end.payload)
    score, labels = done.get("score") or {}, done.get("labels") or {}
    return {
        "run_id": begun.run_id,
        "name": begun.payload["name"],
        "kind": run_kind(begun.payload),
        "started_at": begun.time,
        "ended_at": None if end is None else end.time,
        "state": state,
        "subjects": done.get("subjects"),
        "scored": done.get("scored"),
        "score": score.get("mean"),
        "score_label": score.get("label"),
        "basis": _basis(score),
        "labels": {label: {name: figures.get(name) for name in _OF_A_LABEL} for label, figures in labels.items()},
        "gate": None if not done or done["gate"] is None else gate_answer(done["gate"]),
        "cost": done.get("cost"),
    }


def _basis(score: Listed) -> str | None:
    """The weakest that a score of the run rests on; of earlier versions, which did not say it, the tier."""
    bases = [basis for basis, count in (score.get("by_basis") or score.get("by_tier") or {}).items() if count]
    return max(bases, key=BASES.index, default=None)


_COLUMNS = ("began (UTC)", "run", "name", "kind", "result", "scored", "score", "basis", "usd")
_WHOLE = frozenset(_COLUMNS) - {"name"}


def runs_table(found: Sequence[Listed]) -> TextTable:
    """Return the runs of :func:`past_runs` as a table for 80 columns.

    The result is the gate's answer; of a run that was not completed, its state. The column ``kind`` is left out where every run is one of a pipeline.
    """
    newest = max((one["started_at"] for one in found), default="")
    rows = [row for one in found for row in _rows(one, newest[:4])]
    kinds = {one["kind"] for one in found}
    shown = [at for at, name in enumerate(_COLUMNS) if name != "kind" or kinds - {"pipeline"}]
    columns, cells = [_COLUMNS[at] for at in shown], [[row[at] for at in shown] for row in rows]
    return TextTable(columns, cells, right=("scored", "score", "usd"), whole=_WHOLE, least=10)


def _rows(run: Listed, year: str) -> Iterator[tuple[str | None, ...]]:
    """Yield the row of a run and, where its file has several labels, a row of each."""
    yield (
        _moment(run["started_at"], year),
        short_run(run["run_id"]),
        run["name"],
        run["kind"],
        run["gate"] if run["state"] == "completed" else run["state"],
        None if run["subjects"] is None else f"{_count(run['scored'])}/{_count(run['subjects'])}",
        None if run["score"] is None else f"{run['score']:.3f}",
        run["basis"],
        _spent(run["cost"]),
    )
    labels = run["labels"] if len(run["labels"]) > 1 else {}
    for label, figures in labels.items():
        mean = None if figures["mean"] is None else f"{figures['mean']:.3f}"
        yield ("", "", f"  {label}", "", "", f"{_count(figures['scored'])}/{_count(figures['total'])}", mean, "", "")


def _moment(time: str, year: str) -> str:
    """*time* to the minute, or its day where it lies in another *year*."""
    return f"{time[5:10]} {time[11:16]}" if time[:4] == year else time[:10]


def _count(number: int) -> str:
    """*number* in four characters at most up to ten million, cut and not rounded."""
    if number >= 10**6:
        return f"{number // 10**5 / 10}M"
    return str(number) if number < 10**4 else f"{number // 1000}k"


def _spent(cost: Listed | None) -> str | None:
    """What was spent in usd, and behind it what was in another unit; ``?`` is what is not known."""
    if cost is None:
        return None
    others = (f" + {amount_text(amount)} {unit}" for unit, amount in cost.items() if unit == "msat" and amount != "0")
    return amount_text(cost.get("usd", "0")) + "".join(others)
