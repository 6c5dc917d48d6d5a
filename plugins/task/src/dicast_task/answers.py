"""What is told of a row, and what may be answered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import orjson

from dicast import ONLY, Answered, Failure, Subject, columns, nearest, read_json

_KEYS = ("content", "metrics")


class BadAnswer(Exception):
    """What was answered is of no use."""


def told(subject: Subject) -> bytes:
    """*subject* as a JSON object: its columns by their names; what is null is left out."""
    return orjson.dumps({name: value for name, value in columns(subject).items() if value is not None})


def answered(
    subject: Subject, data: bytes, seconds: float, retry: Mapping[str, object] | None = None
) -> Answered | Failure:
    """*subject* with the answer that *data* is, or why it is none. It took *seconds*, and was tried as *retry* says."""
    try:
        found = _responses(data)
    except BadAnswer as error:
        return Failure("judge_output_invalid", str(error), retry=retry)
    first = next(iter(found))
    found[first]["metrics"] = {"latency_seconds": round(seconds, 6), **found[first]["metrics"]}
    if retry is not None:
        found[first]["retry"] = retry
    return Answered.of(subject, found)


def _responses(data: bytes) -> dict[str, dict[str, Any]]:
    """The responses by criterion.

    :raises BadAnswer: saying what is wrong.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise BadAnswer(f"the answer is not UTF-8, at byte {error.start}") from error
    value = _object(text)
    if "responses" in value:
        return _named(value)
    return {ONLY: _response(value if "content" in value else {"content": text.removesuffix("\n")}, "the answer")}


def _object(text: str) -> Mapping[str, Any]:
    """The JSON object that *text* is, with null for the NaN that Python writes; an empty one where it is something else."""
    if not text.lstrip().startswith("{"):
        return {}
    try:
        value = read_json(text)
    except orjson.JSONDecodeError:
        value = _without_nan(text)
    return value if isinstance(value, dict) else {}


def _without_nan(text: str) -> Any:
    try:
        return orjson.loads(orjson.dumps(json.loads(text)))
    except (ValueError, TypeError, RecursionError):  # it is no JSON at all, or nothing that can be written as such
        return None


def _named(value: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    named = value["responses"]
    if len(value) > 1 or not isinstance(named, dict) or not named:
        raise BadAnswer(
            "an answer with 'responses' has them by criterion, and nothing else: {CRITERION: {content, metrics}}"
        )
    for name in named:
        if not name.strip() or "." in name:
            raise BadAnswer(f"a criterion's name is not blank and has no dots: {name!r:.80}")
    return {name: _response(one, f"the response {name!r:.80}") for name, one in named.items()}


def _response(value: object, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadAnswer(f"{place} is {value!r:.80}, not {{content, metrics}}")
    for key in value:
        if key not in _KEYS:
            near = nearest(key, _KEYS)
            raise BadAnswer(
                f"{place} has the key {key!r:.80}{f', did you mean {near!r}?' if near else '; put it under metrics'}"
            )
    content, metrics = value.get("content"), value.get("metrics") or {}
    if content is None or (isinstance(content, str) and not content.strip()):
        raise BadAnswer(f"{place} is empty")
    if not isinstance(metrics, dict):
        raise BadAnswer(f"{place} has metrics that are no object: {metrics!r:.80}")
    return {"content": content if isinstance(content, str) else orjson.dumps(content).decode(), "metrics": metrics}
