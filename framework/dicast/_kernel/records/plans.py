"""Plan of a run next to its result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..contract.protocols import Ledger
from ..events import PLAN_MADE
from ..values import Query


def plan_and_result(ledger: Ledger, started: Mapping[str, Any], done: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``plan``: the newest plan for a run with the payload *started*, with the results in *done*; empty without a plan."""
    for entry in ledger.read(Query(types=(PLAN_MADE,), newest_first=True)):
        payload: Mapping[str, Any] = entry.event.payload
        if payload["file"] == started.get("file") and payload["setup"] == started.get("setup"):
            plan, score = payload["plan"], done["score"] or {}
            costs = {unit: {**cost, "spent": done["cost"][unit]} for unit, cost in plan["cost"].items()}
            has_interval = score.get("ci_low") is not None
            comparison = {
                "made_at": entry.event.time,
                "subjects": {"planned": plan["subjects"], "judged": done["subjects"]},
                "cost": costs,
                "width": {
                    "planned": (plan.get("width") or {}).get("width"),
                    "reached": score["ci_high"] - score["ci_low"] if has_interval else None,
                },
            }
            return {"plan": comparison}
    return {}
