"""``dicast runs``: the runs of a ledger, from their first and last events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, time
from itertools import islice
from pathlib import Path
from typing import Any

import click

from ...toolkit.decimals import decimal_text
from ...toolkit.money import amount_text, amounts_text
from ...toolkit.terminal import print_lines
from ...toolkit.text_table import TextTable
from ..api.runs import read_ledger
from ..contract.implements import implements
from ..contract.protocols import Ledger
from ..events import RUN_COMPLETED, RUN_STOPPED
from ..leases.hold_lease import live_run_check
from ..leases.protocol import Leasing
from ..report.batches import waiting_batches
from ..report.older import current_document
from ..resume.named_runs import run_kind, started_runs
from ..resume.spending import Spending, decimals, reserved_costs, run_spending
from ..values import ALL_METRICS, BASES, Cost, Event, Query
from ..values.passes import only_metric
from ..values.score import UNITS
from .gate_summary import gate_answer
from .options import as_json, ledger_path
from .output import MOST, print_json
from .records import utc
from .summary import short_run

_LABEL_FIGURES = ("mean", "pass_rate", "scored", "failed", "total")
"""Figures of each label in a listed run."""

Listed = dict[str, Any]
"""A run as ``dicast runs --json`` lists it."""


@click.command()
@click.option("--name", metavar="NAME", help="Only runs of the pipeline with this name.")
@click.option("--since", metavar="TIME", help="Only runs that started at this ISO 8601 time or later.")
@click.option(
    "--limit", type=click.IntRange(0, MOST), default=20, show_default=True, metavar="N", help="List at most N runs."
)
@ledger_path
@as_json
def runs(name: str | None, since: str | None, limit: int, ledger: Path | str | None, as_json: bool) -> None:
    """List the runs of the ledger, the most recently started first. Other commands accept a run's id, the first or last characters of the id, or the pipeline's name."""
    earliest = None if since is None else utc(since, "--since", time.min)
    listed = read_ledger(ledger, lambda open_ledger: list(islice(past_runs(open_ledger, name, earliest), limit)))
    if as_json:
        print_json({"runs": listed})
    elif listed:
        print_lines([runs_table(listed), *unsettled_lines(listed)])
    else:
        click.echo("no runs found; dicast run FILE starts one", err=True)


def past_runs(
    ledger: Ledger,
    name: str | None = None,
    since: str | None = None,
    spending: Callable[[Ledger, str], Spending] = run_spending,
) -> Iterator[Listed]:
    """Yield the runs of the pipeline *name* that started at *since* or later, by default all, the most recently started first.

    *spending* returns the spending of a run that has not ended. ``cost`` has the settled amounts of a run, and ``unsettled`` the amounts of its open
    and lost reservations.
    """
    is_running, now, reserved = _held_check(ledger), datetime.now(UTC).isoformat(), reserved_costs(ledger)
    for entry in started_runs(ledger.read, tools=True):
        start = entry.event
        if name in (None, start.payload["name"]) and (since is None or start.time >= since):
            query = Query(start.run_id, (RUN_COMPLETED, RUN_STOPPED), newest_first=True, limit=1)
            end = next((last.event for last in ledger.read(query)), None)
            listed = _listed(start, end, is_held=is_running(start.run_id), reserved=reserved.get(start.run_id, ()))
            if listed["ended_at"] is None:
                spent = spending(ledger, start.run_id)
                listed |= {"cost": spent.cost, "unsettled": spent.unsettled}
            waits = listed["state"] != "completed" and waiting_batches(ledger.read, start.run_id, now)
            yield {**listed, "state": "waiting", "batches": waits} if waits else listed


def _held_check(ledger: Ledger) -> Callable[[str], bool]:
    """Return a predicate of run ids: True if a process carries out the run. Always False for a ledger without leases."""
    alive = live_run_check(ledger)
    return lambda run_id: implements(ledger, Leasing) and ledger.lease_of(run_id) is not None and alive(run_id)


def _listed(start: Event, end: Event | None, *, is_held: bool, reserved: Sequence[Cost]) -> Listed:
    if is_held:
        state, end = "running", None
    elif end is None:
        state = "dead"
    else:
        state = "completed" if end.type == RUN_COMPLETED else "stopped"
    document: Any = {} if end is None else current_document(end.payload)
    score, labels = document.get("score") or {}, document.get("labels") or {}
    return {
        "run_id": start.run_id,
        "name": start.payload["name"],
        "kind": run_kind(start.payload),
        "started_at": start.time,
        "ended_at": None if end is None else end.time,
        "state": state,
        "subjects": document.get("subjects"),
        "scored": document.get("scored"),
        "score": score.get("mean"),
        "score_label": score.get("label"),
        "only_metric": only_metric(document) if labels and document.get("metrics") else None,
        "basis": _basis(score),
        "labels": {label: {name: figures.get(name) for name in _LABEL_FIGURES} for label, figures in labels.items()},
        "gate": None if not document or document["gate"] is None else gate_answer(document["gate"]),
        "cost": document.get("cost"),
        "unsettled": _unsettled(document.get("spend_lost") or {}, reserved),
    }


def _unsettled(lost: Mapping[str, str | None], reserved: Sequence[Cost]) -> dict[str, str | None]:
    """Return the sums of the *lost* amounts by unit and the *reserved* ones."""
    costs = [Cost(lost[unit], unit) for unit in UNITS if lost.get(unit, "0") != "0"]
    return decimals([*costs, *reserved])


def _basis(score: Listed) -> str | None:
    """Return the weakest basis among the run's scores; for documents of older versions without a basis, the weakest tier."""
    bases = [basis for basis, count in (score.get("by_basis") or score.get("by_tier") or {}).items() if count]
    return max(bases, key=BASES.index, default=None)


_COLUMNS = ("start (UTC)", "run", "name", "kind", "result", "scored", "score", "basis", "usd")
_UNCUT = frozenset(_COLUMNS) - {"name"}


def runs_table(runs: Sequence[Listed]) -> TextTable:
    """Return the runs of :func:`past_runs` as a table for 80 columns.

    The column ``result`` is the gate's decision, or the state of a run that is not completed. The column ``kind`` is left out if every run is a pipeline's.
    """
    newest = max((run["started_at"] for run in runs), default="")
    rows = [row for run in runs for row in _rows(run, newest[:4])]
    kinds = {run["kind"] for run in runs}
    indexes = [at for at, name in enumerate(_COLUMNS) if name != "kind" or kinds - {"pipeline"}]
    columns, cells = [_COLUMNS[at] for at in indexes], [[row[at] for at in indexes] for row in rows]
    return TextTable(columns, cells, right=("scored", "score", "usd"), uncut=_UNCUT, least=10)


def unsettled_lines(runs: Sequence[Listed]) -> Iterator[str]:
    """Yield a line for each run with open or lost reservations: the most that they can add to its cost."""
    for run in runs:
        if amounts := amounts_text(run["unsettled"]):
            yield f"{short_run(run['run_id'])}: at most {amounts} not settled"


def _rows(run: Listed, year: str) -> Iterator[tuple[str | None, ...]]:
    """Yield the row of a run and, if its file has several labels, a row for each label."""
    yield (
        _moment(run["started_at"], year),
        short_run(run["run_id"]),
        run["name"],
        run["kind"],
        run["gate"] if run["state"] == "completed" else run["state"],
        None if run["subjects"] is None else f"{_count(run['scored'])}/{_count(run['subjects'])}",
        None if run["score"] is None else decimal_text(run["score"], 3),
        run["basis"],
        _spent(run["cost"]),
    )
    labels = run["labels"] if len(run["labels"]) > 1 else {}
    for label, figures in labels.items():
        name = run["only_metric"] if label == ALL_METRICS and run["only_metric"] else label
        mean = None if figures["mean"] is None else decimal_text(figures["mean"], 3)
        yield ("", "", f"  {name}", "", "", f"{_count(figures['scored'])}/{_count(figures['total'])}", mean, "", "")


def _moment(time: str, year: str) -> str:
    """Return *time* to the minute, or only its day if it is in another *year*."""
    return f"{time[5:10]} {time[11:16]}" if time[:4] == year else time[:10]


def _count(number: int) -> str:
    """Return *number* in at most four characters, for numbers up to ten million; cut, not rounded."""
    if number >= 10**6:
        return f"{number // 10**5 / 10}M"
    return str(number) if number < 10**4 else f"{number // 1000}k"


def _spent(cost: Listed | None) -> str | None:
    """Return the amount spent in usd, with the amount in msat if there is one; ``?`` for an unknown amount."""
    if cost is None:
        return None
    extra = (f" + {amount_text(amount)} {unit}" for unit, amount in cost.items() if unit == "msat" and amount != "0")
    return amount_text(cost.get("usd", "0")) + "".join(extra)
