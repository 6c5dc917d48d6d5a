"""The plan that was made for a run, beside what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..contract.protocols import Ledger
from ..events import PLAN_MADE
from ..values import Query


def plan_and_truth(ledger: Ledger, started: Mapping[str, Any], done: Mapping[str, Any]) -> dict[str, Any]:
    """``plan``: the newest one for a run that *started* so, with what it came to, as *done* says; nothing where none was made."""
    for entry in ledger.read(Query(types=(PLAN_MADE,), newest_first=True)):
        made: Mapping[str, Any] = entry.event.payload
        if made["file"] == started.get("file") and made["setup"] == started.get("setup"):
            plan, score = made["plan"], done["score"] or {}
            costs = {unit: {**cost, "spent": done["cost"][unit]} for unit, cost in plan["cost"].items()}
            known = score.get("ci_low") is not None
            found = {
                "made_at": entry.event.time,
                "subjects": {"planned": plan["subjects"], "judged": done["subjects"]},
                "cost": costs,
                "width": {
                    "planned": (plan.get("width") or {}).get("width"),
                    "reached": score["ci_high"] - score["ci_low"] if known else None,
                },
            }
            return {"plan": found}
    return {}
