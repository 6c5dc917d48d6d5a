"""Answers of tasks: text, or an object with ``content`` or with ``responses`` by criterion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from .._kernel.values import ONLY, Answered, Failure, Subject
from .._kernel.values.names import nearest, not_finite

_KEYS = ("content", "metrics")


class BadAnswer(Exception):
    """An answer that cannot be used; the message has the reason."""


def answered(
    subject: Subject, answer: object, seconds: float, retry: Mapping[str, object] | None = None
) -> Answered | Failure:
    """Return *subject* with a task's *answer* as its output, or a ``judge_output_invalid`` Failure with the reason.

    :param answer: text, or another JSON value, whose JSON text is the output; a mapping with ``content`` (and ``metrics``), or with
        ``responses``, which are such mappings by criterion.
    :param seconds: the duration of the call: the default of the answer's ``metrics.latency_seconds``.
    :param retry: the tries of the call: ``{attempts, max_attempts, history}``.
    """
    try:
        responses = _responses(answer)
    except BadAnswer as error:
        return Failure("judge_output_invalid", str(error), retry=retry)
    first = next(iter(responses))
    responses[first]["metrics"] = {"latency_seconds": round(seconds, 6), **responses[first]["metrics"]}
    if retry is not None:
        responses[first]["retry"] = retry
    return Answered.of(subject, responses)


def _responses(answer: object) -> dict[str, dict[str, Any]]:
    """Return the responses by criterion.

    :raises BadAnswer: with the reason.
    """
    if isinstance(answer, Mapping) and "responses" in answer:
        return _named(answer)
    is_single = isinstance(answer, Mapping) and "content" in answer
    return {ONLY: _response(answer if is_single else {"content": answer}, "the answer")}


def _named(value: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    named = value["responses"]
    if len(value) > 1 or not isinstance(named, Mapping) or not named:
        raise BadAnswer(
            "an answer with 'responses' has them by criterion, and nothing else: {CRITERION: {content, metrics}}"
        )
    for name in named:
        if not isinstance(name, str) or not name.strip() or "." in name:
            raise BadAnswer(f"a criterion's name is not blank and has no dots: {name!r:.80}")
    return {name: _response(item, f"the response {name!r:.80}") for name, item in named.items()}


def _response(value: object, place: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise BadAnswer(f"{place} is {value!r:.80}, not {{content, metrics}}")
    for key in value:
        if key not in _KEYS:
            near = nearest(str(key), _KEYS)
            raise BadAnswer(
                f"{place} has the key {key!r:.80}{f', did you mean {near!r}?' if near else '; put it under metrics'}"
            )
    content, metrics = value.get("content"), value.get("metrics") or {}
    if content is None or (isinstance(content, str) and not content.strip()):
        raise BadAnswer(f"{place} is empty")
    if not isinstance(metrics, Mapping):
        raise BadAnswer(f"{place} has metrics that are no object: {metrics!r:.80}")
    text = _text(content, place)
    if wrong := not_finite(content, place) or not_finite(metrics, f"{place}: metrics"):
        raise BadAnswer(f"{wrong}, which JSON does not have")
    return {"content": text, "metrics": metrics}


def _text(content: object, place: str) -> str:
    if isinstance(content, str):
        return content
    try:
        return orjson.dumps(content).decode()
    except TypeError as error:
        raise BadAnswer(f"{place} is neither text nor JSON: {error}") from error
