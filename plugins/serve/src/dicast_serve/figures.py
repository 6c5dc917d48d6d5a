"""Answers about quality, cost and agreement: the documents of the commands, and documents combined from two commands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

from dicast import Ledger, Query
from dicast.reading import (
    FAILED,
    VerdictColumns,
    given_labels,
    live_run_check,
    read_open_judgments,
    read_verdicts,
    resume_command,
)
from dicast.toolkit.money import rounded

from .reading import reader
from .runs import full_run_id
from .waiting import waiting

DAYS = 7
"""Default length of a window."""

Values = Mapping[str, Any]
Document = dict[str, Any]


def quality(ledger: Ledger, values: Values) -> Document:
    """Return the document of ``dicast quality``."""
    return {**reader("quality")(ledger, **_reader_arguments(ledger, values))}


def cost(ledger: Ledger, values: Values) -> Document:
    """Return the document of ``dicast cost``; without a window and a run, of the last 7 days."""
    arguments = _reader_arguments(ledger, values)
    if arguments["run"] is None and arguments["start"] is None:
        arguments["end"] = arguments["end"] or datetime.now(UTC)
        arguments["start"] = arguments["end"] - timedelta(days=DAYS)
    return {**reader("cost")(ledger, **arguments)}


def agreement(ledger: Ledger, values: Values) -> Document:
    """Return the document of ``dicast agreement``."""
    return {**reader("agreement")(ledger, **_reader_arguments(ledger, values))}


def agreement_days(ledger: Ledger, values: Values) -> Document:
    """Return agreement by day."""
    return {**reader("agreement_days")(ledger, **_reader_arguments(ledger, values))}


def compare(ledger: Ledger, values: Values) -> Document:
    """Return the document of ``dicast compare``. Both runs must be in this ledger."""
    runs = {side: full_run_id(ledger, values[side]) for side in ("a", "b")}
    chosen = {name: value for name, value in values.items() if value is not None}
    return {**reader("compare")(ledger, **{**chosen, **runs})}


def savings(ledger: Ledger, values: Values) -> Document:
    """Return by model the cost of judging, its cost had every verdict been escalated, and the quality of the work."""
    document = reader("quality")(
        ledger, group_by="model", subject_kind="turn", saved=True, **_reader_arguments(ledger, values)
    )
    spent = {row["model"]: row for row in reader("cost")(ledger, group_by="model")["data"]}
    return {
        "window": document["window"],
        "current_pricing_version": document["current_pricing_version"],
        "data": [_saved(row, spent.get(row["chosen_model"])) for row in document["data"]],
    }


def _saved(row: Mapping[str, Any], agent: Mapping[str, Any] | None) -> Document:
    paid, extra_cost = row["judge_cost_usd_total"], row["judge_cost_usd_saved"]
    all_escalated = saved = None
    if paid is not None and extra_cost is not None:
        escalated_cost = rounded(Decimal(paid) + extra_cost, 6)
        all_escalated, saved = f"{escalated_cost:f}", f"{escalated_cost - Decimal(paid):f}"
    names = ("chosen_model", "verdict_count", "scored_count", "mean_score", "p50_score", "p10_score", "below_floor")
    return {
        **{name: row[name] for name in names},
        "escalated_count": row["escalated_count"],
        "judge_cost_usd_total": paid,
        **({"judge_cost_msat_total": msat} if (msat := row.get("judge_cost_msat_total")) is not None else {}),
        "judge_cost_usd_all_escalated": all_escalated,
        "judge_cost_usd_saved": saved,
        "agent_usd_total": None if agent is None else agent["usd"],
        "agent_calls": None if agent is None else agent["calls"],
        "agent_tokens": None if agent is None else agent["tokens"],
    }


def backlog(ledger: Ledger, values: Values) -> Document:
    """Return started evaluations without an end, by judge and kind of subject, with the oldest; and turns that wait for judging.

    ``open`` counts the evaluations of runs that a process carries out, ``interrupted`` the others: a killed run leaves its evaluations without an end. ``resume_commands`` resume the
    runs of interrupted evaluations, the newest first; a run that ``dicast run`` did not start has none.
    """
    run_id = None if values["run"] is None else full_run_id(ledger, values["run"])
    subject_kind = values["subject_kind"]
    open_ = [
        entry.event for entry in read_open_judgments(ledger, run_id) if subject_kind in (None, entry.event.subject_kind)
    ]
    is_live = cache(live_run_check(ledger))
    at_work: Counter[tuple[str, str]] = Counter()
    interrupted: Counter[tuple[str, str]] = Counter()
    for event in open_:
        counts = at_work if is_live(str(event.run_id)) else interrupted
        counts[str(event.payload["judge"]), str(event.subject_kind)] += 1
    oldest: dict[tuple[str, str], str] = {}
    for event in open_:
        oldest.setdefault((str(event.payload["judge"]), str(event.subject_kind)), event.time)
    ended_runs = dict.fromkeys(run for run in (str(event.run_id) for event in reversed(open_)) if not is_live(run))
    return {
        "open": at_work.total(),
        "interrupted": interrupted.total(),
        "resume_commands": [command for run in ended_runs if (command := _resume_command(ledger, run)) is not None],
        "waiting": waiting(ledger, run_id),
        "data": [
            {
                "judge": judge,
                "subject_kind": kind,
                "open": at_work[judge, kind],
                "interrupted": interrupted[judge, kind],
                "oldest": since,
            }
            for (judge, kind), since in sorted(oldest.items())
        ],
    }


def _resume_command(ledger: Ledger, run_id: str) -> str | None:
    started = next(ledger.read(Query(run_id, ("run.started",), limit=1)), None)
    return None if started is None else resume_command(started.event.payload, run_id, ledger)


def judges(ledger: Ledger, values: Values) -> Document:
    """Return the number of verdicts and failures of each judge, by kind of subject. ``labeled`` counts its scored subjects with labels of people."""
    rows = read_verdicts(ledger)
    counts: Counter[tuple[str, str, str | None]] = Counter()
    for code, count in Counter(rows.codes).items():
        origin = rows.origins[code]
        counts[origin.judge, origin.kind, origin.judge_kind] += count
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0][0], item[0][1], item[0][2] or ""))
    labeled = _labeled(ledger, rows)
    return {
        "data": [
            {
                "judge": judge,
                "subject_kind": kind,
                "judge_kind": by,
                "count": count,
                "labeled": len(labeled.get((judge, kind, by), ())),
            }
            for (judge, kind, by), count in ordered
        ],
    }


def _labeled(ledger: Ledger, rows: VerdictColumns) -> Mapping[tuple[str, str, str | None], set[str]]:
    """Return by judge, kind of subject and kind of judge the ids of scored subjects with labels of people."""
    kinds: dict[str, set[str]] = {}
    for _, label in given_labels(ledger):
        kinds.setdefault(label.subject_id, set()).add(label.kind)
    labeled: dict[tuple[str, str, str | None], set[str]] = {}
    for code, flag, id in zip(rows.codes, rows.flags, rows.ids, strict=True) if kinds else ():
        origin = rows.origins[code]
        if id in kinds and not flag & FAILED and kinds[id] & {"", origin.kind}:
            labeled.setdefault((origin.judge, origin.kind, origin.judge_kind), set()).add(id)
    return labeled


def _reader_arguments(ledger: Ledger, values: Values) -> dict[str, Any]:
    """Return *values* as arguments of readers: their names for the ends of the window, and full ids of runs."""
    names = {"from": "start", "to": "end"}
    arguments = {names.get(name, name): value for name, value in values.items()}
    match arguments.get("run"):
        case str(run):
            arguments["run"] = full_run_id(ledger, run)
        case tuple(runs):
            arguments["run"] = tuple(full_run_id(ledger, run) for run in runs)
    return arguments
