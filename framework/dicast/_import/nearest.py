"""The format that a file of no known format resembles most, and the first place that does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from .._kernel.values.names import nearest
from ..toolkit.beginning import Beginning
from ..toolkit.input_file import MAX_LINE_BYTES, InputFile

_KEYS: Mapping[str, tuple[str, ...]] = {
    "traces/messages": ("messages", "conversations", "contents", "role", "content"),
    "traces/events": ("type", "payload", "session_id", "turn_id", "time"),
    "transcripts/claude_code": ("sessionId", "uuid", "parentUuid", "message", "type"),
    "transcripts/codex": ("timestamp", "type", "payload"),
    "transcripts/gemini_cli": ("sessionId", "projectHash", "messages", "startTime"),
    "transcripts/atif": ("schema_version", "agent", "steps"),
    "transcripts/swe_agent": ("trajectory", "history", "info"),
    "transcripts/openhands": ("id", "timestamp", "source", "action", "observation"),
    "otel/spans": ("resourceSpans", "traceId", "spanId", "attributes"),
    "rows/jsonl": ("id", "input", "output", "reference"),
}
"""Keys of a record of each format."""

_LISTS = ("messages", "conversations", "contents")
"""Keys of a list of messages."""


def nearest_format(path: Path, beginning: Beginning) -> str:
    """Return a phrase with the nearest format of a file and the first place that does not fit."""
    if not beginning.objects:
        return _not_json(path, beginning)
    record = beginning.objects[0]
    scores = {name: _fit(keys, record) for name, keys in _KEYS.items()}
    name = max(scores, key=lambda candidate: scores[candidate])
    place = f"{path.name}:1"
    if not scores[name]:
        keys = ", ".join(map(repr, [*record][:6])) or "none"
        return f"nearest is rows/jsonl; {place}: no key is that of a conversation (keys: {keys})"
    for key in _KEYS[name]:
        similar = nearest(key, [written for written in record if written not in _KEYS[name]])
        if key not in record and similar:
            return f"nearest is {name}; {place}: the key {similar!r} is unknown, did you mean {key!r}?"
    if name == "traces/messages" and (
        wrong := next((key for key in _LISTS if not isinstance(record.get(key, []), list)), None)
    ):
        return f"nearest is {name}; {place}: the value of {wrong!r} is {record[wrong]!r:.40}, not a list of messages"
    missing = next((key for key in _KEYS[name] if key not in record), None)
    if missing is not None:
        return f"nearest is {name}; {place}: the record has no {missing!r}"
    wrong = next((key for key in _KEYS[name] if not isinstance(record[key], str | list | dict)), _KEYS[name][0])
    return (
        f"nearest is {name}; {place}: the value of {wrong!r} is {record[wrong]!r:.40}, not a text, a list or an object"
    )


def _fit(keys: tuple[str, ...], record: Mapping[str, Any]) -> float:
    """Return the share of *keys* that the record has, counting half for a similar key."""
    points = [1.0 if key in record else 0.5 if nearest(key, record) else 0.0 for key in keys]
    return max(points[0] / 2, sum(points) / len(points)) if points else 0.0


def _not_json(path: Path, beginning: Beginning) -> str:
    for number, line in enumerate(beginning.lines, 1):
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            if number == 1 and error.pos >= len(line) and len(beginning.lines) > 1:
                return _cut_document(path)
            return f"nearest is JSON lines; line {number}, column {error.pos + 1} is not JSON: {error.msg}"
        if not isinstance(value, dict):
            return f"nearest is JSON lines; line {number} is no JSON object"
    return "nearest is JSON lines; the file has no line of text"


def _cut_document(path: Path) -> str:
    """Return the phrase for a document of several lines, with the first place that is not JSON."""
    with InputFile.opened(path) as file, file.binary() as stream:
        data = stream.read(MAX_LINE_BYTES)
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError as error:
        return f"nearest is a JSON document; line {error.lineno}, column {error.colno} is not JSON: {error.msg}"
    return "nearest is a JSON document; it has no object"
