"""What audits have corrected, for a reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Document = Mapping[str, Any]


def corrected_lines(done: Document) -> Iterator[str]:
    """What the audits of a run come to: the corrected means, or why there are none, and what the gate costs beside judging everything."""
    score = done["score"] or {}
    yield from _lines("the mean", score)
    for label, tally in done["metrics"].items():
        if "corrected" in tally:
            yield from _lines(f"the mean of {label}", tally)
    cost = done["cost"]
    if cost.get("if_all_judged") not in (None, "0"):
        yield f"  judging everything would have cost about {cost['if_all_judged']} {_unit(done)}"
    ratio = cost.get("ratio_at_equal_width")
    if ratio is not None and ratio > 1:
        yield f"  the gate with this audit costs {ratio:.2f} times as much as judging everything, for an interval as wide: it does not pay"
    elif ratio is not None:
        yield f"  the gate with this audit costs {ratio:.0%} of judging everything, for an interval as wide"


def _lines(what: str, entry: Document) -> Iterator[str]:
    found = entry.get("corrected")
    if found is None:
        if (reason := entry.get("reasons", {}).get("corrected")) is not None:
            yield f"  corrected: {what} is not known: {reason['message']}"
        return
    if not found["held_back"]:
        return  # the plain mean is the corrected one
    yield (
        f"  corrected: {what} is {found['mean']:.4f} (95 %: {found['ci_low']:.4f} to {found['ci_high']:.4f}), had all been given their truth "
        f"metrics; from {found['n_audited']:,} audits of {found['held_back']:,} held back"
    )
    bias = found["plain_bias"]
    if found["plain_bias_low"] > 0 or found["plain_bias_high"] < 0:
        yield f"  so the plain mean is too {'high' if bias > 0 else 'low'}, by {abs(bias):.4f}"


def _unit(done: Document) -> str:
    return "msat" if done["cost"]["usd"] == "0" and done["cost"]["msat"] not in (None, "0") else "usd"


def plan_lines(plan: Document) -> Iterator[str]:
    """The plan of a run against what it came to."""
    for unit, cost in plan["cost"].items():
        low, high, spent = cost["low"], cost["high"], cost["spent"]
        if None in (low, high, spent) or high == spent == "0":
            continue
        inside = float(low) <= float(spent) <= float(high)
        shown = f"{low} to {high} {unit}" if cost["mid"] is None else f"{cost['mid']} {unit} ({low} to {high})"
        yield f"plan: {shown}; spent {spent}: {'as planned' if inside else 'NOT as planned'}"
    width = plan["width"]
    if width["planned"] is not None and width["reached"] is not None:
        yield f"plan: an interval {width['planned']:.4f} wide; it is {width['reached']:.4f}"
