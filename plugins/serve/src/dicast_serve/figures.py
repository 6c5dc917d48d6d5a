"""What is answered about quality, cost and agreement: the documents of the commands, and what is made of two of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from dicast import Ledger
from dicast.reading import read_open_judgments, read_verdicts

from .reading import reader
from .runs import known
from .waiting import waiting

DAYS = 7
"""The length of a window that is not named."""

Values = Mapping[str, Any]
Document = dict[str, Any]


def quality(ledger: Ledger, given: Values) -> Document:
    """The document of ``dicast quality``."""
    return {**reader("quality")(ledger, **_asked(ledger, given))}


def cost(ledger: Ledger, given: Values) -> Document:
    """Return the document of ``dicast cost``, of the last 7 days where neither the window nor a run is named."""
    asked = _asked(ledger, given)
    if asked["run"] is None and asked["start"] is None:
        asked["end"] = asked["end"] or datetime.now(UTC)
        asked["start"] = asked["end"] - timedelta(days=DAYS)
    return {**reader("cost")(ledger, **asked)}


def agreement(ledger: Ledger, given: Values) -> Document:
    """The document of ``dicast agreement``."""
    return {**reader("agreement")(ledger, **_asked(ledger, given))}


def agreement_days(ledger: Ledger, given: Values) -> Document:
    """Agreement day by day."""
    return {**reader("agreement_days")(ledger, **_asked(ledger, given))}


def compare(ledger: Ledger, given: Values) -> Document:
    """The document of ``dicast compare``, of runs in this ledger and of nothing else."""
    runs = {side: known(ledger, given[side]) for side in ("a", "b")}
    chosen = {name: value for name, value in given.items() if value is not None}
    return {**reader("compare")(ledger, **{**chosen, **runs})}


def savings(ledger: Ledger, given: Values) -> Document:
    """What judging has cost by model, beside what it would have cost had every verdict been escalated, and how good the work was."""
    found = reader("quality")(ledger, group_by="model", subject_kind="turn", saved=True, **_asked(ledger, given))
    spent = {row["model"]: row for row in reader("cost")(ledger, group_by="model")["data"]}
    return {
        "window": found["window"],
        "current_pricing_version": found["current_pricing_version"],
        "data": [_saved(row, spent.get(row["chosen_model"])) for row in found["data"]],
    }


def _saved(row: Mapping[str, Any], agent: Mapping[str, Any] | None) -> Document:
    paid, more = row["judge_cost_usd_total"], row["judge_cost_usd_saved"]
    all_escalated = saved = None
    if paid is not None and more is not None:
        whole = (Decimal(paid) + more).quantize(Decimal("0.000001"))
        all_escalated, saved = f"{whole:f}", f"{whole - Decimal(paid):f}"
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


def backlog(ledger: Ledger, given: Values) -> Document:
    """What was begun and has not ended, by judge and kind of subject, with the oldest of each; and the turns that wait to be begun."""
    run_id = None if given["run"] is None else known(ledger, given["run"])
    wanted = given["subject_kind"]
    open_ = [entry.event for entry in read_open_judgments(ledger, run_id) if wanted in (None, entry.event.subject_kind)]
    counts = Counter((str(event.payload["judge"]), str(event.subject_kind)) for event in open_)
    oldest: dict[tuple[str, str], str] = {}
    for event in open_:
        oldest.setdefault((str(event.payload["judge"]), str(event.subject_kind)), event.time)
    return {
        "open": len(open_),
        "waiting": waiting(ledger, run_id),
        "data": [
            {"judge": judge, "subject_kind": kind, "open": count, "oldest": oldest[judge, kind]}
            for (judge, kind), count in sorted(counts.items())
        ],
    }


def judges(ledger: Ledger, given: Values) -> Document:
    """Who has judged what: each judge by kind of subject, with its verdicts and failures counted."""
    found = read_verdicts(ledger)
    counts: Counter[tuple[str, str, str | None]] = Counter()
    for code, count in Counter(found.codes).items():
        origin = found.origins[code]
        counts[origin.judge, origin.kind, origin.judge_kind] += count
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0][0], one[0][1], one[0][2] or ""))
    return {
        "data": [
            {"judge": judge, "subject_kind": kind, "judge_kind": by, "count": count}
            for (judge, kind, by), count in ordered
        ]
    }


def _asked(ledger: Ledger, given: Values) -> dict[str, Any]:
    """*given* with the names that readers have for the ends of the window, and with runs that the ledger has."""
    names = {"from": "start", "to": "end"}
    found = {names.get(name, name): value for name, value in given.items()}
    match found.get("run"):
        case str(run):
            found["run"] = known(ledger, run)
        case tuple(runs):
            found["run"] = tuple(known(ledger, run) for run in runs)
    return found
