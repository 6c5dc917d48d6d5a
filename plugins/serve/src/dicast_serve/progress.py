"""Progress of a run: judged subjects, means and cost so far, and the time left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import fsum
from typing import Any

from dicast import Ledger, Query
from dicast.reading import resume_command

from .runs import full_run_id, listed_run
from .tables import Table, Tables, run_spending

LEAST_SECONDS, LEAST_SUBJECTS = 3.0, 10
"""Seconds and subjects that a rate is measured over at least."""

Values = Mapping[str, Any]
Document = dict[str, Any]


def progress(ledger: Ledger, values: Values) -> Document:
    """Return the judged subjects of a run, their outcomes, the mean of each label, and the settled cost so far; for a running run also its rate and the seconds left."""
    run_id = full_run_id(ledger, values["run_id"])
    run = listed_run(ledger, run_id)
    tables: Tables = getattr(ledger, "tables", None) or Tables()
    table = tables.get(ledger, run_id, None)
    spending = run_spending(ledger, run_id)
    judged, expected = len(table.ids), table.document["expected"]
    started = next(ledger.read(Query(run_id, ("run.started",), limit=1))).event.payload
    pace = _rate(table.document["pace"], datetime.now(UTC)) if run["state"] == "running" else None
    outcomes = Counter(table.column("outcomes"))
    return {
        **{name: run[name] for name in ("run_id", "name", "state", "started_at", "ended_at")},
        "judged": judged,
        "expected": expected,
        "outcomes": {name: outcomes[name] for name in ("pass", "fail", "none", "open")},
        "label": table.document["label"],
        "labels": {label: _figures(table, label) for label in table.labels},
        "cost": {unit: cost.decimal for unit, cost in spending.settled.items()},
        "unsettled": spending.unsettled,
        "unknown_costs": sum(spending.unknown.values()),
        "last_result_at": table.document["pace"][-1][0] if judged else None,
        "per_second": pace,
        "resume_command": None if run["state"] in ("completed", "running") else resume_command(started, run_id, ledger),
        "seconds_left": None if pace is None or expected is None else max(0, expected - judged) / pace,
    }


def _figures(table: Table, label: str) -> Document:
    scores = [value for value in table.values(label) if value is not None]
    return {"mean": fsum(scores) / len(scores) if scores else None, "scored": len(scores)}


def _rate(pace: Sequence[tuple[str, int]], now: datetime) -> float | None:
    """Return the subjects per second between the first and the last time of *pace*.

    None if the times are too close, if there are too few subjects, or if the run has stalled: the time since the last result exceeds the time between.
    """
    if len(pace) < 2:
        return None
    (first, before), (last, judged) = pace[0], pace[-1]
    since, until = datetime.fromisoformat(first), datetime.fromisoformat(last)
    elapsed = (until - since).total_seconds()
    if elapsed < LEAST_SECONDS or judged - before < LEAST_SUBJECTS or (now - until).total_seconds() > elapsed:
        return None
    return (judged - before) / elapsed
