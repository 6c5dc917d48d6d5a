"""Bodies of requests that give or retract a label: their schemas, and parsing with all problems at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs
import orjson

from dicast import Problem, nearest

from .label_queue import DRAWN
from .parameters import BadRequest

MAX_BODY_BYTES = 200_000

NO_NULL = "^[^\\x00]*$"
_ID: Mapping[str, Any] = {"type": "string", "minLength": 1, "maxLength": 1000, "pattern": NO_NULL}
_PERSON: Mapping[str, Any] = {"type": "string", "pattern": "^[A-Za-z0-9_.-]{1,100}$", "default": "human"}

BODY: Mapping[str, Any] = {
    "type": "object",
    "required": ["subject_id", "score"],
    "additionalProperties": False,
    "properties": {
        "subject_id": _ID,
        "subject_kind": {**_ID, "default": "turn"},
        "score": {"type": "number", "minimum": 0, "maximum": 1},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1, "default": 1},
        "judge": _PERSON,
        "reason": {"type": "string", "maxLength": 10_000, "pattern": NO_NULL},
        "run_id": _ID,
        "drawn": {"type": "string", "enum": sorted(set(DRAWN.values()))},
        "blind": {"type": "boolean"},
        "adjudicated": {"type": "boolean", "default": False},
        "expected": {"type": "string", "maxLength": 1000, "pattern": NO_NULL},
    },
}

RETRACTION: Mapping[str, Any] = {
    "type": "object",
    "required": ["subject_id", "run_id"],
    "additionalProperties": False,
    "properties": {
        "subject_id": _ID,
        "subject_kind": {**_ID, "default": "turn"},
        "run_id": _ID,
        "judge": _PERSON,
    },
}


@attrs.frozen
class Label:
    """A person's verdict on a subject."""

    subject_id: str
    score: float
    subject_kind: str = "turn"
    confidence: float = 1.0
    judge: str = "human"
    reason: str | None = None
    run_id: str | None = None
    """The run whose output is labeled; by default the last run that judged the subject and is not a tool's."""
    drawn: str | None = None
    """How the subject was drawn; None if it is unknown."""
    blind: bool | None = None
    """Whether the verdicts were hidden from the person; None if it is unknown."""
    adjudicated: bool = False
    """Whether it decides between different labels of people."""
    expected: str | None = None
    """The run of the person's label that the person knows and that this label replaces, "" for no label; None accepts any label."""
    output_digest: str | None = None
    """The digest of the labeled output; not a member of the request."""


@attrs.frozen
class Retraction:
    """The retraction of the label that the run *run_id* recorded, by the person *judge*."""

    subject_id: str
    run_id: str
    subject_kind: str = "turn"
    judge: str = "human"


def label_of(body: bytes) -> Label:
    """Return the label in the JSON *body* of a request.

    :raises BadRequest: naming every problem of the body.
    """
    return Label(**_members(body, BODY))


def retraction_of(body: bytes) -> Retraction:
    """Return the retraction in the JSON *body* of a request.

    :raises BadRequest: naming every problem of the body.
    """
    return Retraction(**_members(body, RETRACTION))


def _members(body: bytes, schema: Mapping[str, Any]) -> dict[str, Any]:
    try:
        document = orjson.loads(body)
    except ValueError as error:
        raise BadRequest("the body is not JSON") from error
    if not isinstance(document, dict):
        raise BadRequest("the body is a JSON object")
    properties: Mapping[str, Any] = schema["properties"]
    problems = [
        Problem(
            f"unknown key {name!r:.100}; there are {', '.join(properties)}",
            path=name[:100],
            hint=nearest(name[:100], properties),
        )
        for name in document
        if name not in properties
    ]
    problems += [Problem(f"{name} is missing", path=name) for name in schema["required"] if name not in document]
    problems += [
        Problem(f"{name} is {_expectation(properties[name])}", path=name)
        for name, value in document.items()
        if name in properties and not _fits(value, properties[name])
    ]
    if problems:
        raise BadRequest(problems)
    return document


def _fits(value: object, schema: Mapping[str, Any]) -> bool:
    if schema["type"] == "boolean":
        return isinstance(value, bool)
    if schema["type"] == "number":
        return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
    if "enum" in schema:
        return value in schema["enum"]
    return (
        isinstance(value, str)
        and schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value))
        and re.fullmatch(schema["pattern"].removeprefix("^").removesuffix("$"), value) is not None
    )


def _expectation(schema: Mapping[str, Any]) -> str:
    if schema["type"] == "boolean":
        return "true or false"
    if schema["type"] == "number":
        return "a number from 0 to 1"
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    if schema["pattern"] != NO_NULL:
        return f"text, {schema['pattern']}"
    return f"text of {schema.get('minLength', 0)} to {schema['maxLength']:,} characters, none of them NUL"
