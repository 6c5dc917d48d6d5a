"""Record of a subject: the response of its task, with the values that extractors read from it."""

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
_PARTS = ("id", "session_id", "input", "output", "reference")


def recorded_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return *row* as records contain it: the SHA-256 replaces the content of media, because the subject has the content."""
    return {name: value if isinstance(value, str) else _without_media(value) for name, value in row.items()}


def _without_media(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_without_media(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    data = value.get("data")
    if value.get("type") in MEDIA_KINDS and value.keys() >= {"media_type", "bytes"} and isinstance(data, str):
        from hashlib import sha256  # OpenSSL takes 2 ms to load

        return {
            **{key: member for key, member in value.items() if key != "data"},
            "sha256": sha256(data.encode()).hexdigest(),
        }
    return {key: _without_media(item) for key, item in value.items()}


def columns(subject: Subject) -> dict[str, object]:
    """Return the row that *subject* was read from, by the names in a record, a template and a command.

    The parts of the subject come first, without parts that are None. The values of its context follow, then the columns that became
    its parts, by their names in the data. If names repeat, a part wins over a column, and a column wins over a value of the context.
    """
    parts = {name: value for name in _PARTS if (value := getattr(subject, name)) is not None}
    row = parts | {name: value for name, value in subject.context.items() if name not in parts}
    return row | {name: value for name, value in subject.columns.items() if name not in parts}


def responses(record: Record) -> Mapping[str, Mapping[str, Any]]:
    """Return the responses of *record* by criterion; a single response is under :data:`dicast.ONLY`, and there may be none."""
    named: Mapping[str, Mapping[str, Any]] | None = record.get("responses")
    if named:
        return named
    return {ONLY: record["response"]} if record.get("response") else {}


def as_json(content: object) -> Any:
    """Return the JSON value of a reply's *content*, alone or in one fenced block; :data:`dicast.toolkit.json_values.MISSING` for other text."""
    if not isinstance(content, str):
        return content
    fenced = _FENCED.fullmatch(content)
    try:
        return read_json(fenced[1] if fenced else content)
    except orjson.JSONDecodeError:
        return MISSING


def new_record(row: Mapping[str, object], produced: Subject, levels: Mapping[str, object]) -> dict[str, Any]:
    """Return the record of *produced*, before any extraction; *levels* are the ``security_level`` and ``determinism_level`` of the task.

    :raises TypeError: if its responses do not have the form of :class:`~dicast.Answered`, or are not JSON.
    """
    responses = getattr(produced, "responses", None) or {ONLY: {"content": produced.text, "metrics": {}}}
    _check(responses)
    record: dict[str, Any] = {"row": recorded_row(row), "response": next(iter(responses.values()))}
    if set(responses) != {ONLY}:
        record["responses"] = responses
    record["metrics"] = {
        key: value for response in responses.values() for key, value in response.get("metrics", {}).items()
    }
    if retries := [response["retry"] for response in responses.values() if response.get("retry")]:
        record["retry"] = max(retries, key=lambda retry: retry["attempts"])
    plain: dict[str, Any] = orjson.loads(orjson.dumps({**record, **levels}))  # NaN becomes null
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


def put_metrics(record: dict[str, Any], metrics: Mapping[str, object], writes: Sequence[str]) -> str | None:
    """Merge *metrics*, the result of an extractor, into the metrics of *record*; return the first fault of them as text, or None.

    No two extractors write to the same place. *writes* are the places that this extractor declares.
    """
    for fault in faults(metrics, writes, record.get("responses", {})):
        return fault
    for path, value in _leaves(metrics):
        place = record["metrics"]
        for key in path[:-1]:
            inner = place.get(key)
            place[key] = place = inner if isinstance(inner, dict) else {}
        place[path[-1]] = value
    return None


def _leaves(metrics: Mapping[str, object], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    for key, value in metrics.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, (*path, str(key)))
        else:
            yield (*path, str(key)), value


def faults(metrics: Mapping[str, object], writes: Sequence[str], criteria: Container[str]) -> Iterator[str]:
    """Yield the faults of the *metrics* of an extractor that writes to the places *writes*, for a record with *criteria*."""
    for path, value in _leaves(metrics):
        if fault := _fault(path, value, writes, criteria):
            yield fault


def _fault(path: tuple[str, ...], value: object, writes: Sequence[str], criteria: Container[str]) -> str | None:
    name = ".".join(path)
    for key in path:
        if not _NAME.fullmatch(key) and key != ONLY and key not in criteria:
            return f"the name {key!r} (metrics.{name}) is neither in snake case nor a criterion"
    if not f"{name}.".startswith(tuple([f"{written}." for written in writes])):
        return f"it writes metrics.{name}, but its 'writes' lists {', '.join(writes) or 'nothing'}; add the name"
    if isinstance(value, float) and not math.isfinite(value):
        return f"metrics.{name} is {value}; write null for a missing value"
    try:
        orjson.dumps(value)
    except TypeError as error:
        return f"metrics.{name} is not JSON: {error}"
    return None
