"""Recognition of records that failed when they were recorded, and the text of their errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson

from dicast.toolkit.json_values import MISSING, lookup

WhyFailed = Callable[[Mapping[str, Any]], str | None]
"""Returns the reason why a row failed when it was recorded, or None."""

ERROR = "error"

_STATES = frozenset(("errored", "error", "failed", "incomplete", "canceled", "cancelled", "expired"))
"""Values of ``type`` or ``status`` that mark a missing output as a failure."""

_ENDS = ("finish_reason", "finishReason", "stop_reason")
"""Keys of the reason why a model's reply ended; a reply without the expected text counts as failed by it."""
_END_KEYS = frozenset(_ENDS)

_LEVELS, _LEVEL = ("level", "status", "state", "status_code"), "ERROR"
"""Keys in exported traces for the state of a record, and the value for a failure, as in OpenTelemetry."""
_LEVEL_MESSAGES = ("statusMessage", "status_message", "exception_message", "exception")

_NO_ERROR = frozenset(("", "none", "null", "nan", "false", "no", "n/a", "0", "[]", "{}"))
"""Texts in a column of errors that mean no error."""

_CODES = ("code", "type", "errorCode", "error_code", "status", "name")
_MESSAGES = ("message", "errorMessage", "error_message", "msg", "detail")

_BAD_STATUS = 400
_LONGEST_REASON = 40
_LONGEST = 500
"""Most characters of an error that are recorded."""


def why_failed(fields: Mapping[str, str]) -> WhyFailed:
    """Return the function that recognizes failed records among rows in which *fields* name the columns.

    A row failed if one of these holds:

    - The path ``fields.error`` leads to an error.
    - The output, or another part that *fields* name, is missing, and the row has an error in the column ``error``, or a ``level`` or
      ``status`` that is ``ERROR``.
    - The same part is missing, and an object on its path has an ``error`` that is not empty, a ``status_code`` of 400 or more, a ``type`` or
      ``status`` such as ``errored``, a ``blockReason``, or, if the part is absent, a ``finish_reason``.
    - The output is in an object with such a ``status_code`` and a ``body`` with an ``error``: then it is an error message.
    """
    named = {part: path for part, path in fields.items() if part in ("input", "output", "reference")}
    paths = {"output": "output", **named}
    is_nested = any("." in path for path in paths.values())
    is_data = ERROR in named.values()  # the column of errors is a part of the subject
    stated, output = fields.get(ERROR), paths["output"]

    def why(row: Mapping[str, Any]) -> str | None:
        if stated is not None and (text := error_text(lookup(row, stated), numbers=True)) is not None:
            return text
        if not is_nested and (is_data or ERROR not in row) and row.get(output) not in (None, ""):
            return None
        for part, path in paths.items():
            value = lookup(row, path)
            if _is_missing(part, value, named):
                error = None if is_data else error_text(row.get(ERROR))
                error = error or _error_on(row, path, is_absent=value is MISSING)
            else:
                bad = (_bad_status(inside, at) for at, inside in _objects(row, path) if _has_error(inside.get("body")))
                error = next(filter(None, bad), None) if part == "output" else None
            if error is not None:
                return error
        return None

    return why


def output_ending(row: Mapping[str, Any], output: str) -> str | None:
    """Return the word for the end of the output at the path *output*: a finish reason in the innermost object around it."""
    if "." in output:
        around = [row, *(inside for _, inside in _objects(row, output))]
    elif _END_KEYS.isdisjoint(row):  # most rows
        return None
    else:
        around = [row]
    for inside in reversed(around):
        for name in _ENDS:
            reason = inside.get(name)
            if isinstance(reason, str) and 0 < len(reason) <= _LONGEST_REASON:
                return reason
    return None


def _error_on(row: Mapping[str, Any], path: str, *, is_absent: bool) -> str | None:
    """Return the error that a row without the part at *path* has at its top level, or in an object on the way."""
    for name in _LEVELS:
        if row.get(name) == _LEVEL:
            texts = (error_text(row.get(message)) for message in _LEVEL_MESSAGES)
            return next(filter(None, texts), f"{name} is {_LEVEL!r}")
    objects = list(_objects(row, path))
    errors = (_error_in(inside, at) for at, inside in objects)
    ends = (
        ((f"{at}.{name}", inside.get(name)) for at, inside in reversed(objects) for name in _ENDS) if is_absent else ()
    )
    faults = (f"{at} is {reason!r}, and {path!r} is not there" for at, reason in ends if isinstance(reason, str))
    return next(filter(None, errors), None) or next(faults, None)


def _is_missing(part: str, value: object, named: Mapping[str, str]) -> bool:
    """Return True if the row lacks a part that the user named, or its output is null or blank."""
    if value is MISSING:
        return part in named
    return part == "output" and (value is None or (isinstance(value, str) and not value.strip()))


def _has_error(body: object) -> bool:
    return isinstance(body, Mapping) and error_text(body.get(ERROR)) is not None


def _error_in(inside: Mapping[str, Any], place: str) -> str | None:
    """Return the error in the object *inside* at *place*."""
    text = error_text(inside.get(ERROR)) or _bad_status(inside, place)
    feedback = inside.get("promptFeedback", inside.get("prompt_feedback"))
    if text is None and isinstance(feedback, Mapping):
        reasons = (error_text(feedback.get(name)) for name in ("blockReason", "block_reason"))
        text = next((f"{place} was blocked: {reason}" for reason in reasons if reason), None)
    states = (name for name in ("type", "status") if str(inside.get(name)).casefold() in _STATES)
    return text or next((f"{place}.{name} is {inside[name]!r}" for name in states), None)


def _objects(row: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the objects below *row* on the way along *path*, with their paths."""
    steps = path.split(".")
    for stop in range(1, len(steps)):
        place = ".".join(steps[:stop])
        inside = lookup(row, place)
        if isinstance(inside, Mapping):
            yield place, inside


def _bad_status(inside: Mapping[str, Any], place: str) -> str | None:
    status, body = inside.get("status_code"), inside.get("body")
    if type(status) is not int or status < _BAD_STATUS:
        return None
    text = error_text(body.get(ERROR)) if isinstance(body, Mapping) else None
    return f"{place}.status_code is {status}" + (f": {text}" if text else "")


def error_text(value: object, *, numbers: bool = False) -> str | None:
    """Return the text of the error *value*; None if it is no error: null, false, empty, or a number unless *numbers* count."""
    if value is MISSING or not value:
        return None
    if isinstance(value, str):
        return None if value.strip().casefold() in _NO_ERROR else _cut(value.strip())
    if isinstance(value, bool):
        return "the record is marked as failed"
    if isinstance(value, int | float):
        return f"the record has the error {value}" if numbers else None
    if isinstance(value, Mapping):
        code = next(
            (value[name] for name in _CODES if isinstance(value.get(name), str | int) and value[name] != ""), None
        )
        text = next((value[name] for name in _MESSAGES if isinstance(value.get(name), str) and value[name]), None)
        if text is None and (inside := error_text(value.get(ERROR))) is not None:
            return inside
        if text is not None:
            return _cut(text if code is None else f"{code}: {text}")
    if isinstance(value, list | tuple):
        return _cut("; ".join(error_text(item, numbers=True) or str(item) for item in value))
    return _cut(orjson.dumps(value, default=str).decode())


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
