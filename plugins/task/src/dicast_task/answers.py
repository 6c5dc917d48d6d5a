"""What is told of a row, and how an answer's bytes are read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import orjson

from dicast import Answered, Failure, Subject, columns
from dicast.toolkit.answers import answered as with_answer
from dicast.toolkit.json_values import read_json


def told(subject: Subject) -> bytes:
    """*subject* as a JSON object: its columns by their names; what is null is left out."""
    return orjson.dumps({name: value for name, value in columns(subject).items() if value is not None})


def answered(
    subject: Subject, data: bytes, seconds: float, retry: Mapping[str, object] | None = None
) -> Answered | Failure:
    """*subject* with the answer that *data* is, or why it is none. It took *seconds*, and was tried as *retry* says."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        return Failure("judge_output_invalid", f"the answer is not UTF-8, at byte {error.start}", retry=retry)
    value = _object(text)
    shaped = "responses" in value or "content" in value
    return with_answer(subject, value if shaped else text.removesuffix("\n"), seconds, retry)


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
