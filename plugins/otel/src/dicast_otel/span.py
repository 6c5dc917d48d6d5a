"""Spans of all formats in one class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeAlias

import attrs
import orjson

Attributes: TypeAlias = Mapping[str, Any]

NANOSECONDS = 1_000_000_000


@attrs.frozen
class SpanEvent:
    """An event of a span: its *name*, its *attributes*, its *time* in nanoseconds since the epoch."""

    name: str
    attributes: Attributes
    time: int | None = None


@attrs.frozen
class Span:
    """A span of a trace. *start* and *end* are nanoseconds since the epoch, None if unknown. Ids that are bytes in the format are lower-case hex.

    *links* are pairs of a trace id and a span id. *error* is the message of a failed span, empty if it has none, None for a span without
    a failure. *scope* is the name of the instrumentation.
    """

    trace_id: str
    id: str
    parent_id: str | None
    name: str
    attributes: Attributes
    start: int | None = None
    end: int | None = None
    events: Sequence[SpanEvent] = ()
    links: Sequence[tuple[str, str]] = ()
    error: str | None = None
    scope: str = ""
    resource: Attributes = attrs.field(factory=dict)

    @property
    def ends(self) -> int:
        """The end of the span, else its start, else 0."""
        return self.end if self.end is not None else self.start or 0


def text_of_time(nanoseconds: int | None) -> str | None:
    """Return a time in nanoseconds as ISO 8601 with microseconds, None for an unknown time."""
    if nanoseconds is None:
        return None
    second, rest = divmod(nanoseconds, NANOSECONDS)
    text = _text_of_second(second)
    return None if text is None else f"{text}.{rest // 1000:06d}Z"


@lru_cache(1024)
def _text_of_second(second: int) -> str | None:
    """Return a second since the epoch as ISO 8601, None outside of the range of datetime. The spans of a trace share seconds."""
    try:
        return datetime.fromtimestamp(second, UTC).isoformat()[:19]
    except (OverflowError, ValueError, OSError):
        return None


def flat(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return *attributes* with nested objects as dotted names, as Phoenix writes ``{"llm": {"model_name": …}}``, and texts that MLflow wrote as
    JSON without their quotes.
    """
    result: dict[str, Any] = {}
    for key, value in attributes.items():
        if type(value) in _PLAIN and not key.startswith("mlflow"):  # as most
            result[key] = value
            continue
        area = key.partition(".")[0]
        if (area in _NESTED and isinstance(value, Mapping)) or (area == "llm" and _has_objects(value)):
            _flatten(key, value, result)
        else:
            result[key] = _unquoted(value) if area == "mlflow" else value
    return result


def _unquoted(value: object) -> object:
    """Return the text that *value* is in JSON, any other value as it is."""
    if not isinstance(value, str) or value[:1] != '"':
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return value


def _has_objects(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


_PLAIN = frozenset((str, int, float, bool, type(None)))
_NESTED = frozenset(
    ("llm", "openinference", "input", "output", "session", "tool", "tool_call", "retrieval", "embedding", "reranker")
)


def _flatten(key: str, value: object, result: dict[str, Any]) -> None:
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            _flatten(f"{key}.{name}", inner, result)
    elif isinstance(value, list) and _has_objects(value):
        for number, inner in enumerate(value):
            _flatten(f"{key}.{number}", inner, result)
    else:
        result[key] = value
