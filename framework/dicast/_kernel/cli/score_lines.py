"""Lines of a run's summary about its score, its audits and its plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...toolkit.printable import one_line
from ..values import BASES
from ..values.passes import shown_label

Document = Mapping[str, Any]

_WORDS = ("human", "truth", "uncalibrated model", "heuristic", "proxy only", "recorded")
"""Words for the bases of scores, in the order of :data:`BASES`."""

_MODEL = 2
"""Index of models in :data:`BASES`."""


def score_lines(done: Document) -> Iterator[str]:
    """Yield the mean of the score, its confidence interval, and the basis of the scores."""
    score = done["score"]
    if score is None and len(done["labels"]) < 2:
        return
    if score is None:
        yield f"score: none, as there are {len(done['labels'])} labels; choose one with gate: {{on: LABEL}}"
    elif score["mean"] is not None:
        of = f" of {one_line(shown_label(done, score['label']))}" if len(done["labels"]) > 1 else ""
        scale = " (raw scale)" if score.get("scale") == "raw" else ""
        yield f"score: mean {score['mean']:.4f}{of}{scale}, {_aggregate(score)}{_scored_share(done, score)}"
        if score["ci_low"] is not None:
            yield f"  95 % interval of the mean {score['ci_low']:.4f} to {score['ci_high']:.4f} ({score['ci_method']})"
        bases = score.get("by_basis") or {
            basis: n for basis, n in score["by_tier"].items() if n
        }  # documents of older versions
        yield from corrected_lines(done)
        if bases:  # the scores of a criterion have no basis
            yield "  scores by basis: " + ", ".join(_basis_counts(bases, score.get("calibrated", 0)))


def _scored_share(done: Document, score: Document) -> str:
    """Return the number of subjects in the mean, of all subjects that should have a score."""
    figures = (
        done["labels"].get(score["label"])
        or done["metrics"].get(score["label"])
        or done.get("recorded", {}).get(score["label"], {})
    )
    due = done["scored"] + done["failed"] + done["unaffordable"]
    scored, total = figures.get("scored", done["scored"]), figures.get("total", due)
    effective = "" if "effective_n" not in score else f" (weighted: effective n {score['effective_n']:,.1f})"
    return f"over {scored:,} of {total:,} subjects{effective}"


def _basis_counts(bases: Mapping[str, int], calibrated: int) -> Iterator[str]:
    """Yield the number of scores for each basis. Scores that a *calibrated* cascade kept are listed apart from other models'."""
    model = BASES[_MODEL]
    calibrated_count = min(calibrated, bases.get(model, 0))
    for basis, n in bases.items():
        rest = n - calibrated_count if basis == model else n
        if rest < n:
            yield f"calibrated model: {calibrated_count:,}"
        if rest:
            yield f"{_WORDS[BASES.index(basis)]}: {rest:,}"


def _aggregate(score: Document) -> str:
    """Return the aggregate after its method's name; empty if the method is the mean, which is shown anyway."""
    method = score["aggregation"]
    if method == "mean":
        return ""
    if score["aggregate"] is None:
        return ""
    name = method if isinstance(method, str) else f"mean without {method['trimmed_mean']:g} % at each end"
    return f"{name} {score['aggregate']:.4f}, "


def corrected_lines(done: Document) -> Iterator[str]:
    """Yield the results of the audits of a run: the corrected means or the reason for their absence, and the cost of the gate compared with judging everything."""
    yield from _correction_lines("mean", done["score"] or {}, " if all had their truth metrics")
    for label, tally in done["metrics"].items():
        if "corrected" in tally:
            yield from _correction_lines(label, tally)
    cost = done["cost"]
    if cost.get("if_all_judged") not in (None, "0"):
        yield f"  judging everything would have cost about {cost['if_all_judged']} {_money_unit(done)}"
    ratio = cost.get("ratio_at_equal_width")
    if ratio is not None and ratio > 1:
        yield f"  the gate with this audit costs {ratio:.2f} times as much as judging everything for an interval of the same width: it does not pay"
    elif ratio is not None:
        yield f"  the gate with this audit costs {ratio:.0%} of judging everything for an interval of the same width"


def _correction_lines(name: str, entry: Document, condition: str = "") -> Iterator[str]:
    correction = entry.get("corrected")
    if correction is None:
        reasons = entry.get("reasons", {})
        if isinstance(reasons, Mapping) and (reason := reasons.get("corrected")) is not None:
            yield f"  corrected: {name} unknown: {reason['message']}"
    elif correction["held_back"]:  # otherwise the corrected mean equals the plain mean
        ends = f"95 % interval {correction['ci_low']:.4f} to {correction['ci_high']:.4f}"
        by = f"{correction['n_audited']:,} audits of {correction['held_back']:,} subjects held back"
        yield f"  corrected: {name} {correction['mean']:.4f} ({ends}){condition}; {by}{_bias_text(correction)}"
        yield from (f"    note: {note}" for note in correction.get("notes", ()))


def _bias_text(correction: Document) -> str:
    """Return the error of the plain mean, if it is significant."""
    if correction["plain_bias_low"] <= 0 <= correction["plain_bias_high"]:
        return ""
    return f"; the plain mean is too {'high' if correction['plain_bias'] > 0 else 'low'} by {abs(correction['plain_bias']):.4f}"


def _money_unit(done: Document) -> str:
    return "msat" if done["cost"]["usd"] == "0" and done["cost"]["msat"] not in (None, "0") else "usd"


def plan_lines(plan: Document) -> Iterator[str]:
    """Yield the plan of a run compared with the result."""
    for unit, cost in plan["cost"].items():
        low, high, spent = cost["low"], cost["high"], cost["spent"]
        if None in (low, high, spent) or high == spent == "0":
            continue
        inside = float(low) <= float(spent) <= float(high)
        planned = f"{low} to {high} {unit}" if cost["mid"] is None else f"{cost['mid']} {unit} ({low} to {high})"
        yield f"plan: {planned}; spent {spent}: {'as planned' if inside else 'NOT as planned'}"
    width = plan["width"]
    if width["planned"] is not None and width["reached"] is not None:
        yield f"plan: interval width {width['planned']:.4f}; reached {width['reached']:.4f}"
