"""Text of a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Document = Mapping[str, Any]


def plan_lines(document: Document) -> Iterator[str]:
    """Yield the plan in lines."""
    rows = document["rows"]
    yield f"{document['name']}: {document['subjects']:,} subjects, {rows['left']:,} to judge; from {_basis(document)}"
    for unit, cost in document["cost"].items():
        if cost["high"] != "0" or unit == "usd":
            yield f"cost: {_cost(cost, unit, document['level'])}"
    if document["calls"] is not None:
        yield f"calls: about {document['calls']['mid']:,}"
    if document["time"] is not None:
        time = document["time"]
        yield f"time: {_time(time['mid'])} ({_time(time['low'])} to {_time(time['high'])}), {time['concurrency']} at once"
    if document["width"] is not None:
        interval = document["width"]
        yield f"interval of the mean: {interval['width']:.4f} wide, likely less than {interval['width_high']:.4f} (95 %, {interval['subjects']:,} subjects)"
    if document["power"] is not None:
        power = document["power"]
        yield f"a difference from the baseline of {power['mde']:.4f} is detected with power {power['power']:g}"
    if document["solve"] is not None:
        yield from _solve(document["solve"])
    yield from (f"note: {note}" for note in document["words"])
    yield from (f"no {name}: {reason}" for name, reason in document["reasons"].items())
    if document["resume"]:
        yield f"next: {document['resume_command']}"


def _basis(document: Document) -> str:
    count = document["rows"]["seen"]
    if not count:
        return "upper bounds of the calls' cost"
    run = f"run {document['run_id'][-6:]}"
    return f"{count:,} rows of {run}, which can be resumed" if document["resume"] else f"{count:,} rows of {run}"


def _cost(cost: Document, unit: str, level: float) -> str:
    if cost["mid"] is None:
        most = "not known" if cost["high"] is None else f"{cost['high']} {unit} at most"
        return f"{most}, {cost['settled']} {unit} spent"
    return f"{cost['mid']} {unit} ({level:.0%}: {cost['low']} to {cost['high']})".replace("%", " %") + (
        f", {cost['settled']} {unit} of it spent" if cost["settled"] != "0" else ""
    )


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _solve(solve: Document) -> Iterator[str]:
    if solve["what"] == "audit":
        if solve["rate"] is not None:
            yield f"audit: rate {solve['rate']:.4f} gives this width; the cheapest rate is {solve['best_rate']:.4f}"
        return
    if solve["subjects"] is None:
        return
    if solve.get("affordable") is not None:
        yield f"for this budget: {solve['affordable']:,} subjects"
    available = "" if solve["enough"] else f", but the source has {solve['there_are']:,}"
    yield f"needed: {solve['subjects']:,} subjects{available}"
    for unit, cost in solve["cost"].items():
        if cost is not None and cost["high"] != "0":
            yield f"  they cost {cost['mid']} {unit} ({cost['low']} to {cost['high']})"
