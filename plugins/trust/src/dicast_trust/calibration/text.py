"""Text of a calibration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dicast.toolkit.text_table import TextTable

from ..terminal.wrapping import WIDTH, wrapped

Part = str | TextTable


def parts(document: Mapping[str, Any], path: str) -> Iterator[Part]:
    """Yield the parts of the text: each stage's threshold and guarantee, the cascade next to its last stage, and the scope."""
    target, alpha = document["target"], document["alpha"]
    population = document["population"]
    yield (
        f"calibration: {document['gold']['n']} labels, {population['n']:,} subjects in {len(population['runs'])} run(s); "
        f"target {target:.4g}, alpha {alpha:.4g}"
    )
    for stage in document["stages"]:
        yield ""
        yield from _stage(stage, target, alpha, len(document["stages"]), document["gold"].get("source", "people"))
    if document["cascade"] is not None:
        yield ""
        yield from _cascade(document["cascade"])
    yield ""
    yield f"This {document['guarantee']}."
    yield f"written to {path}; {_use(document, path)}"


def _use(document: Mapping[str, Any], path: str) -> str:
    if "metric" not in document:
        return f"use it with hybrid/cascade: {{stages: …, calibration: {path}}}"
    (stage,) = document["stages"]
    if stage["threshold"] is None:
        return "no score is certified"
    return f"use it as the metric's pass line, pass_at: {stage['threshold']!r}"


def _stage(stage: Mapping[str, Any], target: float, alpha: float, steps: int, labeller: str) -> Iterator[Part]:
    failed = f", {stage['failures']} failed" if stage["failures"] else ""
    labels = stage["kept"]
    if stage["threshold"] is None:
        escalates = "" if stage["signal"] == "score" else ", so every verdict escalates"
        yield f"{stage['label']}: no threshold{escalates} ({stage['n']} labels{failed})"
    else:
        upper = (
            "" if stage["upper"] is None else f", at most {stage['upper']:.1%} of all kept verdicts".replace("%", " %")
        )
        share = f"{labels['share']:.0%}".replace("%", " %")
        yield f"{stage['label']}: keep verdicts with {stage['signal']} >= {stage['threshold']:.4g}"
        yield f"  keeps {share} of all subjects; {stage['errors']} of {_n(stage)} kept labels are wrong{upper}{failed}"
        sure = f"{1 - alpha / steps:.1%}".replace(".0%", "%").replace("%", " %")
        yield f"  {_certainty(stage, sure)} that at least {target:.4g} of kept verdicts agree with {labeller} ({stage['method']})"
    if stage["needed"] is not None:
        yield f"  more labels: {stage['needed']['words']}"
    yield from (f"  {reason}" for reason in stage["reasons"])
    if rungs := [rung for rung in stage["ladder"] if rung["passed"] is not None]:
        yield TextTable(
            ("threshold", "kept", "errors", "upper", "test"),
            [_rung(rung) for rung in rungs[:12]],
            right=("threshold", "kept", "errors", "upper"),
        )
        if len(rungs) > 12:
            yield f"  and {len(rungs) - 12} more rungs, in the file"


def _n(stage: Mapping[str, Any]) -> int:
    return int([rung["n"] for rung in stage["ladder"] if rung["passed"]][-1])


def _certainty(stage: Mapping[str, Any], sure: str) -> str:
    return f"about {sure} sure" if stage["method"] == "cross-fitted" else f"{sure} sure"


def _rung(rung: Mapping[str, Any]) -> list[object]:
    upper = None if rung["upper"] is None else f"{rung['upper']:.4f}"
    return [f"{rung['threshold']:.4g}", rung["n"], rung["errors"], upper, "passed" if rung["passed"] else "failed"]


def _cascade(cascade: Mapping[str, Any]) -> Iterator[Part]:
    cost, rate = cascade["cost"], cascade["escalation_rate"]
    escalated = "-" if rate is None else f"{rate:.0%}".replace("%", " %")
    yield TextTable(
        ("", "agreement", "95 % interval", "cost (usd)", "escalated"),
        [
            ["cascade", *_agreement(cascade["agreement"]), cost["cascade"], escalated],
            ["last stage alone", *_agreement(cascade["last_stage"]), cost["last_stage_alone"], None],
        ],
        right=("agreement", "cost (usd)", "escalated"),
    )
    if cost["last_stage_alone"] == "0":
        last, share = [*cascade["asked"].items()][-1]
        share = f"{share:.0%}".replace("%", " %")
        note = f"recorded or free replies cost nothing; the cascade asks {last} about {share} of all subjects, the last stage alone about every subject"
        yield from (f"  {line}" for line in wrapped(note, WIDTH - 2))
    yield from (f"  {reason}" for reason in cascade["reasons"])


def _agreement(interval: Mapping[str, float | None]) -> tuple[str | None, str | None]:
    if interval["value"] is None:
        return None, None
    return f"{interval['value']:.3f}", f"{interval['low']:.3f} to {interval['high']:.3f}"
