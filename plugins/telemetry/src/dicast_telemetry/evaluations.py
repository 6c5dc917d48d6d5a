"""Evaluation results in the GenAI semantic conventions: events ``gen_ai.evaluation.result``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from dicast import Event

RESULT = "gen_ai.evaluation.result"
_LONGEST = 8192
_PROVENANCE = {
    "dicast.eval.id": "eval_id",
    "dicast.judge.kind": "judge_kind",
    "dicast.judge.model": "judge_model",
    "dicast.judge.latency_ms": "judge_latency_ms",
    "dicast.rubric.id": "rubric_id",
    "dicast.rubric.version": "rubric_version",
    "dicast.fingerprint": "fingerprint",
    "dicast.tier": "tier",
    "dicast.truth_reason": "truth_reason",
    "dicast.propensity": "propensity",
    "dicast.confidence": "confidence",
    "dicast.cost.usd": "judge_cost_usd",
    "dicast.cost.msat": "judge_cost_msat",
    "dicast.pricing_version": "judge_pricing_version",
}


@attrs.frozen
class Evaluation:
    """An event of a span: its *name* and its *attributes*."""

    name: str
    attributes: Mapping[str, object]


def evaluations(event: Event, *, content: bool) -> Iterator[Evaluation]:
    """Yield the results in *event*: a verdict with its metrics' scores, a failure, or the scores in a record."""
    payload: Mapping[str, Any] = event.payload
    if event.type == "eval.completed":
        yield _verdict(payload, content=content)
        yield from (_score(score, payload, content=content) for score in payload.get("scores", ()))
    elif event.type == "eval.failed":
        attributes = {"gen_ai.evaluation.name": payload.get("judge"), "error.type": payload.get("failure_mode")}
        extra = {"dicast.error.message": _cut(payload.get("error_message"))} if content else {}
        yield Evaluation(RESULT, {**attributes, **_provenance(payload), **extra})
    elif event.type == "record.completed":
        yield from _extracted(payload)


def scored(record: Mapping[str, Any]) -> dict[str, object]:
    """Return the sums of the figures that models report, over the responses of *record*."""
    responses = list(record.get("responses", {}).values()) or [record.get("response") or {}]
    reported = [response.get("metrics") or {} for response in responses]
    figures = {
        f"gen_ai.usage.{kind}_tokens": [_number(metrics.get(name)) for metrics in reported]
        for kind, name in (("input", "prompt_tokens"), ("output", "completion_tokens"))
    }
    return {name: sum(sums) for name, sums in figures.items() if None not in sums}  # type: ignore[arg-type]  # no None


def _verdict(payload: Mapping[str, Any], *, content: bool) -> Evaluation:
    attributes = {"gen_ai.evaluation.name": payload.get("judge"), **_value(payload, "score")}
    why = (payload.get("signals") or {}).get("rationale_redacted") if content else None
    return Evaluation(RESULT, {**attributes, "gen_ai.evaluation.explanation": _cut(why), **_provenance(payload)})


def _value(scored: Mapping[str, Any], name: str) -> dict[str, object]:
    """Return the score in *scored*, or its marked value on a raw scale."""
    score, raw = scored.get(name), scored.get("raw")
    marked = {"dicast.scale": "raw"} if score is None and raw is not None else {}
    return {"gen_ai.evaluation.score.value": raw if marked else score, **marked}


def _provenance(payload: Mapping[str, Any]) -> dict[str, object]:
    return {name: payload.get(field) for name, field in _PROVENANCE.items()}


def _score(score: Mapping[str, Any], verdict: Mapping[str, Any], *, content: bool) -> Evaluation:
    attributes = {
        "gen_ai.evaluation.name": score.get("metric"),
        **_value(score, "value"),
        "gen_ai.evaluation.explanation": _cut(score.get("details") or None) if content else None,
        "dicast.eval.id": verdict.get("eval_id"),
        "dicast.tier": score.get("tier"),
        "dicast.confidence": score.get("confidence"),
        "dicast.weight": score.get("weight"),
        "dicast.rollout": score.get("rollout"),
        "dicast.fingerprint": verdict.get("fingerprint"),
    }
    return Evaluation(RESULT, attributes)


def _extracted(record: Mapping[str, Any]) -> Iterator[Evaluation]:
    metrics = record.get("metrics") or {}
    scores, flags = (
        value if isinstance(value := metrics.get(key), Mapping) else {} for key in ("scores", "score_flags")
    )
    for criterion, value in scores.items():
        label = {True: "pass", False: "fail"}.get(flags[criterion]) if isinstance(flags.get(criterion), bool) else None
        attributes = {"gen_ai.evaluation.name": criterion, "gen_ai.evaluation.score.value": _number(value)}
        yield Evaluation(RESULT, {**attributes, "gen_ai.evaluation.score.label": label, "dicast.extracted": True})


def _number(value: object) -> float | int | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _cut(value: object) -> str | None:
    return None if value is None else str(value)[:_LONGEST]
