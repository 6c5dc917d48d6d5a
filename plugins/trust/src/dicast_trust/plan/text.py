"""A plan for a reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Document = Mapping[str, Any]


def plan_lines(found: Document) -> Iterator[str]:
    """The plan in lines."""
    rows = found["rows"]
    yield f"{found['name']}: {found['subjects']:,} subjects, {rows['left']:,} to be judged; going by {_seen(found)}"
    for unit, cost in found["cost"].items():
        if cost["high"] != "0" or unit == "usd":
            yield f"cost: {_cost(cost, unit, found['level'])}"
    if found["calls"] is not None:
        yield f"calls: about {found['calls']['mid']:,}"
    if found["time"] is not None:
        time = found["time"]
        yield f"time: {_time(time['mid'])} ({_time(time['low'])} to {_time(time['high'])}), {time['concurrency']} at once"
    if found["width"] is not None:
        wide = found["width"]
        yield f"interval of the mean: {wide['width']:.4f} wide, likely less than {wide['width_high']:.4f} (95 %, {wide['subjects']:,} subjects)"
    if found["power"] is not None:
        power = found["power"]
        yield f"a difference from the baseline of {power['mde']:.4f} shows with power {power['power']:g}"
    if found["solve"] is not None:
        yield from _solve(found["solve"])
    yield from (f"note: {one}" for one in found["words"])
    yield from (f"no {name}: {why}" for name, why in found["reasons"].items())
    if found["resume"]:
        yield f"dicast run FILE --resume {found['run_id']} judges the rest"


def _seen(found: Document) -> str:
    seen = found["rows"]["seen"]
    if not seen:
        return "what calls may cost at most"
    run = f"run {found['run_id'][-6:]}"
    return f"{seen:,} rows of {run}, which can be resumed" if found["resume"] else f"{seen:,} rows of {run}"


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
            yield f"audit: rate {solve['rate']:.4f} gives this width; the rate that costs least is {solve['best_rate']:.4f}"
        return
    if solve["subjects"] is None:
        return
    if solve.get("affordable") is not None:
        yield f"for this budget: {solve['affordable']:,} subjects"
    there = "" if solve["enough"] else f", and there are {solve['there_are']:,}"
    yield f"it takes {solve['subjects']:,} subjects{there}"
    for unit, cost in solve["cost"].items():
        if cost is not None and cost["high"] != "0":
            yield f"  they cost {cost['mid']} {unit} ({cost['low']} to {cost['high']})"
