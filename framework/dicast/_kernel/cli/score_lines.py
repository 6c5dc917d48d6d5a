"""The score of a run, and what audits and a plan say of it, for a reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...toolkit.printable import one_line
from ..values import BASES

Document = Mapping[str, Any]

_ON = ("humans", "truth", "models that are not calibrated", "heuristics", "proxies alone")
"""What scores rest on, in the order of :data:`BASES`."""

_MODEL = 2
"""The place of models among them."""


def score_lines(done: Document) -> Iterator[str]:
    """The mean of the score, how sure it is, and what it rests on."""
    score = done["score"]
    if score is None and len(done["labels"]) < 2:
        return
    if score is None:
        yield f"score: none, as there are {len(done['labels'])} labels; gate: {{on: LABEL}} names the one that counts"
    elif score["mean"] is not None:
        of = f" of {one_line(score['label'])}" if len(done["labels"]) > 1 else ""
        scale = " (raw scale)" if score.get("scale") == "raw" else ""
        yield f"score: mean {score['mean']:.4f}{of}{scale}, {_aggregate(score)}{_over(done, score)}"
        if score["ci_low"] is not None:
            yield f"  95 % interval of the mean {score['ci_low']:.4f} to {score['ci_high']:.4f} ({score['ci_method']})"
        bases = score.get("by_basis") or {basis: n for basis, n in score["by_tier"].items() if n}  # of earlier versions
        yield from corrected_lines(done)
        if bases:  # nothing says what a criterion's scores rest on
            yield "  resting " + ", ".join(_resting(bases, score.get("calibrated", 0)))


def _over(done: Document, score: Document) -> str:
    """Of how many subjects the score is the mean."""
    own = done["labels"].get(score["label"]) or done["metrics"].get(score["label"]) or {}
    due = done["scored"] + done["failed"] + done["unaffordable"]
    scored, total = own.get("scored", done["scored"]), own.get("total", due)
    return f"over {scored:,} of {total:,} subjects"


def _resting(bases: Mapping[str, int], calibrated: int) -> Iterator[str]:
    """How many scores rest on what; of models, those that a *calibrated* cascade has kept are told apart."""
    model = BASES[_MODEL]
    kept = min(calibrated, bases.get(model, 0))
    for basis, n in bases.items():
        rest = n - kept if basis == model else n
        if rest < n:
            yield f"on models that are calibrated: {kept:,}"
        if rest:
            yield f"on {_ON[BASES.index(basis)]}: {rest:,}"


def _aggregate(score: Document) -> str:
    """The aggregate under its method's name; nothing where that is the mean, which is told anyway."""
    method = score["aggregation"]
    if method == "mean":
        return ""
    name = method if isinstance(method, str) else f"mean without {method['trimmed_mean']:g} % at each end"
    return f"{name} {score['aggregate']:.4f}, "


def corrected_lines(done: Document) -> Iterator[str]:
    """What the audits of a run come to: the corrected means, or why there are none, and what the gate costs beside judging everything."""
    yield from _lines("mean", done["score"] or {}, ", had all been given their truth metrics")
    for label, tally in done["metrics"].items():
        if "corrected" in tally:
            yield from _lines(label, tally)
    cost = done["cost"]
    if cost.get("if_all_judged") not in (None, "0"):
        yield f"  judging everything would have cost about {cost['if_all_judged']} {_unit(done)}"
    ratio = cost.get("ratio_at_equal_width")
    if ratio is not None and ratio > 1:
        yield f"  the gate with this audit costs {ratio:.2f} times as much as judging everything, for an interval as wide: it does not pay"
    elif ratio is not None:
        yield f"  the gate with this audit costs {ratio:.0%} of judging everything, for an interval as wide"


def _lines(what: str, entry: Document, of: str = "") -> Iterator[str]:
    found = entry.get("corrected")
    if found is None:
        reasons = entry.get("reasons", {})
        if isinstance(reasons, Mapping) and (reason := reasons.get("corrected")) is not None:
            yield f"  corrected: {what} not known: {reason['message']}"
    elif found["held_back"]:  # else the plain mean is the corrected one
        ends = f"95 %: {found['ci_low']:.4f} to {found['ci_high']:.4f}"
        by = f"{found['n_audited']:,} audits of {found['held_back']:,} held back"
        yield f"  corrected: {what} {found['mean']:.4f} ({ends}){of}; {by}{_bias(found)}"
        yield from (f"    note: {note}" for note in found.get("notes", ()))


def _bias(found: Document) -> str:
    """By how much the plain mean is wrong, where that is no chance."""
    if found["plain_bias_low"] <= 0 <= found["plain_bias_high"]:
        return ""
    return f"; the plain one is too {'high' if found['plain_bias'] > 0 else 'low'} by {abs(found['plain_bias']):.4f}"


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
