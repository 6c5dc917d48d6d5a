"""Records of subjects: the responses of the task with the values of extractors."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

import orjson

from ...toolkit.json_values import MISSING, read_json
from ..values import ONLY, Record, Subject
from ..values.chat import MEDIA_KINDS

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_FENCED = re.compile(r"\s*```(?:json)?[ \t]*\r?\n(.*)\n[ \t]*```\s*", re.DOTALL | re.IGNORECASE)
_OWN = ("id", "session_id", "input", "output", "reference")


def recorded_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return *row* as a record has it: with the SHA-256 in place of the content of media, which the subject has."""
    return {name: value if isinstance(value, str) else _brief(value) for name, value in row.items()}


def _brief(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_brief(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    data = value.get("data")
    if value.get("type") in MEDIA_KINDS and value.keys() >= {"media_type", "bytes"} and isinstance(data, str):
        from hashlib import sha256  # OpenSSL takes 2 ms to load

        return {
            **{key: each for key, each in value.items() if key != "data"},
            "sha256": sha256(data.encode()).hexdigest(),
        }
    return {key: _brief(item) for key, item in value.items()}


def columns(subject: Subject) -> dict[str, object]:
    """Return the row that *subject* was read from, by the names that a record, a template and a command know.

    The parts of the subject come first, without those that are None; then its context; then the columns that became its parts, by their
    names in the data. A part comes before a column of its name, and such a column before a value of the context.
    """
    parts = {name: value for name in _OWN if (value := getattr(subject, name)) is not None}
    found = parts | {name: value for name, value in subject.context.items() if name not in parts}
    return found | {name: value for name, value in subject.columns.items() if name not in parts}


def responses(record: Record) -> Mapping[str, Mapping[str, Any]]:
    """The responses of *record* by criterion; a single one stands under :data:`dicast.ONLY`, and there may be none."""
    named: Mapping[str, Mapping[str, Any]] | None = record.get("responses")
    if named:
        return named
    return {ONLY: record["response"]} if record.get("response") else {}


def as_json(content: object) -> Any:
    """The JSON value that a reply's *content* is, alone or in one fenced block; :data:`dicast.toolkit.json_values.MISSING` for other text."""
    if not isinstance(content, str):
        return content
    fenced = _FENCED.fullmatch(content)
    try:
        return read_json(fenced[1] if fenced else content)
    except orjson.JSONDecodeError:
        return MISSING


def new_record(row: Mapping[str, object], made: Subject, levels: Mapping[str, object]) -> dict[str, Any]:
    """The record of *made*, before anything is extracted from it; *levels* are the task's own.

    :raises TypeError: when its responses are not made as :class:`~dicast.Answered` says, or are not JSON.
    """
    responses = getattr(made, "responses", None) or {ONLY: {"content": made.text, "metrics": {}}}
    _check(responses)
    record: dict[str, Any] = {"row": recorded_row(row), "response": next(iter(responses.values()))}
    if set(responses) != {ONLY}:
        record["responses"] = responses
    record["metrics"] = {
        key: value for response in responses.values() for key, value in response.get("metrics", {}).items()
    }
    if retries := [response["retry"] for response in responses.values() if response.get("retry")]:
        record["retry"] = max(retries, key=lambda retry: retry["attempts"])
    plain: dict[str, Any] = orjson.loads(orjson.dumps({**record, **levels}))  # also: what is not a number becomes null
    return plain


def _check(responses: object) -> None:
    if not isinstance(responses, Mapping):
        raise TypeError(f"its responses are {responses!r:.100}, not a mapping")
    for name, response in responses.items():
        if not isinstance(name, str) or not isinstance(response, Mapping):
            raise TypeError(f"its response {name!r:.100} is {response!r:.100}, not a mapping under a text")
        metrics, retry = response.get("metrics"), response.get("retry")
        if not isinstance(response.get("content"), str) or not isinstance(metrics, Mapping):
            raise TypeError(f"its response {name!r} has no text content, or no mapping metrics: {response!r:.100}")
        if retry is not None and not (isinstance(retry, Mapping) and isinstance(retry.get("attempts"), int)):
            raise TypeError(f"the retry of its response {name!r} has no number of attempts: {retry!r:.100}")


def put_metrics(record: dict[str, Any], found: Mapping[str, object], writes: Sequence[str]) -> str | None:
    """Merge *found*, where no other extractor writes, under the metrics of *record*; what is wrong with it, where something is."""
    for wrong in faults(found, writes, record.get("responses", {})):
        return wrong
    for path, value in _leaves(found):
        place = record["metrics"]
        for key in path[:-1]:
            inner = place.get(key)
            place[key] = place = inner if isinstance(inner, dict) else {}
        place[path[-1]] = value
    return None


def _leaves(found: Mapping[str, object], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    for key, value in found.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, (*path, str(key)))
        else:
            yield (*path, str(key)), value


def faults(found: Mapping[str, object], writes: Sequence[str], criteria: Container[str]) -> Iterator[str]:
    """What is wrong with what an extractor *found* in a record with *criteria*, when it says that it *writes* to these places."""
    for path, value in _leaves(found):
        if wrong := _fault(path, value, writes, criteria):
            yield wrong


def _fault(path: tuple[str, ...], value: object, writes: Sequence[str], criteria: Container[str]) -> str | None:
    name = ".".join(path)
    for key in path:
        if not _NAME.fullmatch(key) and key != ONLY and key not in criteria:
            return f"the name {key!r} (metrics.{name}) is neither in snake case nor a criterion's"
    if not f"{name}.".startswith(tuple([f"{written}." for written in writes])):
        return f"it writes metrics.{name}, and says that it writes {', '.join(writes) or 'nothing'}"
    if isinstance(value, float) and not math.isfinite(value):
        return f"metrics.{name} is {value}; what is missing is null"
    try:
        orjson.dumps(value)
    except TypeError as error:
        return f"metrics.{name} is not JSON: {error}"
    return None
