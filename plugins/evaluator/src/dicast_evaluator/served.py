"""Payloads as subjects, and verdicts as results: code shared by ``stdin`` and ``serve``."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from dicast import ALL_METRICS, Event, Subject, nearest
from dicast.signals import shared_signals
from dicast.toolkit.json_data import not_finite

_VERSIONS = (1, 2)


class BadPayload(Exception):
    """An invalid payload; the message has the reason."""


class NoScore(Exception):
    """A candidate that could not be scored. *kind* is the Failure's."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


def subject_of(payload: object, kind: str) -> Subject:
    """Return the subject of *payload*: the candidate is its output.

    The keys of the example are its context, and the whole example is in it as ``example``. ``input`` is its input, ``reference`` or
    ``expected`` its reference, ``session_id`` its session.

    :raises BadPayload: with the problem.
    """
    if not isinstance(payload, dict):
        raise BadPayload("the payload must be a JSON object")
    version = payload.get("_protocol_version", 1)
    if version not in _VERSIONS or isinstance(version, bool):
        raise BadPayload(f"the payload's '_protocol_version' must be 1 or 2, got {version!r:.100}")
    if "candidate" not in payload:
        raise BadPayload("the payload misses the required 'candidate' field")
    candidate, example, model = payload["candidate"], payload.get("example"), payload.get("task_model")
    if not isinstance(candidate, str):
        raise BadPayload(f"the payload's 'candidate' must be text, got {candidate!r:.100}")
    if example is not None and not isinstance(example, dict):
        raise BadPayload(f"the payload's 'example' must be an object, got {example!r:.100}")
    _check_keepable(payload)
    row: Mapping[str, Any] = example or {}
    session = row.get("session_id")
    context = {**row, **({} if example is None else {"example": example})}
    return Subject(
        kind,
        uuid.uuid4().hex,
        input=row.get("input"),
        output=candidate,
        reference=row.get("reference", row.get("expected")),
        context=context | ({} if model is None else {"task_model": model}),
        session_id=session if isinstance(session, str) and session else None,
    )


def _check_keepable(payload: Mapping[str, Any]) -> None:
    """Refuse a payload that the run's records cannot contain.

    :raises BadPayload: for NaN, an infinity, half of a surrogate pair, an integer of hundreds of digits, or values nested too deep.
    """
    event = [[[[[[[[payload]]]]]]]]  # a record nests the payload some levels deep
    try:
        orjson.dumps(event)
    except TypeError as error:
        raise BadPayload(f"the payload cannot be stored as JSON: {error}") from error
    if wrong := not_finite(payload, "payload"):
        raise BadPayload(f"{wrong}, which JSON does not have; send null, or a text")


def result(events: Sequence[Event], on: str | None) -> dict[str, Any]:
    """Return the result of a candidate from its terminal *events*. *on* is the label whose score counts; by default all metrics, else the only judge.

    :raises NoScore: when the label has no verdict.
    """
    verdicts = {str(event.payload["judge"]): event for event in events if event.type == "eval.completed"}
    failures = {str(event.payload["judge"]): event for event in events if event.type == "eval.failed"}
    label = on or _counted([*verdicts, *failures])
    if label in failures:
        payload = failures[label].payload
        raise NoScore(str(payload["error_message"]), str(payload["failure_mode"]))
    if not verdicts and not failures:
        raise NoScore(_NOBODY, "missing_input")
    if label not in verdicts:
        near = nearest(label, [*verdicts])
        raise NoScore(f"nothing is labeled {label!r}{f', did you mean {near!r}?' if near else ''}", "missing_input")
    counted = verdicts[label]
    metrics = {score["metric"]: _metric(score) for score in _scores(verdicts.get(ALL_METRICS))}
    judges = {name: _judge(event) for name, event in verdicts.items() if name != ALL_METRICS}
    return {
        **_counted_score(counted),
        "reasoning": _reasoning(metrics, judges),
        "confidence": counted.payload["confidence"],
        "basis": counted.payload.get("basis"),
        "metrics": metrics,
        "judges": judges,
        "failures": {name: event.payload["error_message"] for name, event in failures.items()},
        "run_id": counted.run_id,
        "eval_id": counted.payload["eval_id"],
    }


def _counted(labels: Sequence[str]) -> str:
    if ALL_METRICS in labels or len(labels) == 1:
        return ALL_METRICS if ALL_METRICS in labels else labels[0]
    if not labels:
        raise NoScore(_NOBODY, "missing_input")
    raise NoScore(f"several judges and no metrics: choose one with --on: {', '.join(labels)}", "crashed")


_NOBODY = (
    "the pipeline judges no candidate: set --kind to a kind of subject that it accepts, and check 'on' and 'accepts'"
)


def _counted_score(event: Event) -> dict[str, Any]:
    """Return the score, on the evaluator's own scale if it has no range.

    :raises NoScore: when a proxy held the candidate back, so that there is no score on that scale.
    """
    score, raw = event.payload["score"], event.payload.get("raw")
    if score is not None:
        return {"score": score}
    if raw is None:
        raise NoScore(
            "a proxy is below scoring.threshold, and the candidate has no score on the raw scale", "missing_input"
        )
    return {"score": raw, "scale": "raw"}


def _scores(event: Event | None) -> Sequence[Mapping[str, Any]]:
    scores: Any = () if event is None else event.payload.get("scores", ())
    return [score for score in scores if score.get("rollout", 0) == 0]


def _metric(score: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "score": score.get("raw") if score["value"] is None else score["value"],
        "confidence": score["confidence"],
        "basis": score.get("basis") or score["tier"],
        "reason": score["details"],
        "signals": shared_signals(score["signals"]),
    }


def _judge(event: Event) -> dict[str, Any]:
    payload = event.payload
    named = {name: payload.get(name) for name in ("score", "confidence", "basis", "judge_model")}
    named["score"] = payload.get("raw") if named["score"] is None else named["score"]
    signals: Any = payload.get("signals") or {}
    return {**named, "signals": shared_signals(signals)}


def _reasoning(metrics: Mapping[str, Mapping[str, Any]], judges: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a line for each metric and judge: its score and its reason."""
    lines = [f"{label}: {_number(item['score'])}{_why(item['reason'])}" for label, item in metrics.items()]
    return "\n".join([*lines, *(f"{label}: {_number(item['score'])}" for label, item in judges.items())])


def _number(score: float | None) -> str:
    return "no score" if score is None else f"{score:g}"


def _why(reason: str) -> str:
    return f" ({reason})" if reason else ""
