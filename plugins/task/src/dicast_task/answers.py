"""The row that a task receives, and the reading of its answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import orjson

from dicast import Answered, Failure, Subject, columns
from dicast.toolkit.answers import answered as with_answer
from dicast.toolkit.json_values import read_json


def row_json(subject: Subject) -> bytes:
    """Return *subject* as a JSON object: its columns by their names, without null values."""
    return orjson.dumps({name: value for name, value in columns(subject).items() if value is not None})


def answered(
    subject: Subject, data: bytes, seconds: float, retry: Mapping[str, object] | None = None
) -> Answered | Failure:
    """Return *subject* with the answer in *data*, or a failure with the reason. It took *seconds*, with the tries in *retry*."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        return Failure("judge_output_invalid", f"the answer is not UTF-8, at byte {error.start}", retry=retry)
    value = _object(text)
    shaped = "responses" in value or "content" in value
    return with_answer(subject, value if shaped else text.removesuffix("\n"), seconds, retry)


def _object(text: str) -> Mapping[str, Any]:
    """Return the JSON object of *text*, with null for the NaN that Python writes; an empty object for any other text."""
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
