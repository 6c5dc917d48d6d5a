"""Spans as SDKs and stores dump them: an object for each span, in a list, by operation, or alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from ..span import NANOSECONDS, Span, SpanEvent, flat
from .faults import Malformed, integer, items, mapping
from .otlp import hex_id

_CONVENTIONS = ("gen_ai.", "llm.", "openinference.", "traceloop.", "ai.", "mlflow.", "langfuse.", "input.value")
_FAILED = (2, "ERROR", "STATUS_CODE_ERROR", "StatusCode.ERROR")


def is_span(value: object) -> bool:
    """Return whether *value* is a span of an SDK: it has a name, attributes and its ids."""
    if not isinstance(value, Mapping) or not isinstance(value.get("attributes"), Mapping):
        return False
    return _context(value) is not None and "name" in value


def is_attributes(value: object) -> bool:
    """Return whether *value* is the attributes of a span, without the span."""
    return isinstance(value, Mapping) and any(
        isinstance(key, str) and key.startswith(_CONVENTIONS) and "." in key for key in value
    )


def is_by_operation(value: object) -> bool:
    """Return whether *value* maps the names of operations to lists of spans."""
    return (
        isinstance(value, Mapping)
        and bool(value)
        and all(isinstance(spans, list) for spans in value.values())
        and any(is_span(span) for spans in value.values() for span in spans[:1])
    )


def read_attributes(value: Mapping[str, Any], path: str) -> Span:
    """Return a span with the attributes *value*; its ids are made from their digest."""
    digest = hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()
    return Span(digest[:32], digest[:16], None, "", flat(value))


def read_dump(value: Mapping[str, Any], path: str) -> Span:
    """Return a span that an SDK dumped: ``to_json()`` of Python, a span of JavaScript, a span of Phoenix.

    :raises Malformed: with the path of the wrong value.
    """
    context = _context(value)
    if context is None:
        raise Malformed("a span needs its ids: 'context' or 'spanContext'", path)
    parent_context = value.get("parentSpanContext") or value.get("parent") or {}
    parent = next((value[key] for key in _PARENTS if value.get(key)), None)
    if parent is None and isinstance(parent_context, Mapping):
        parent = _either(parent_context, "spanId", "span_id")
    start = _time(_either(value, *_STARTS), f"{path}.start_time")
    end = _time(_either(value, *_ENDS), f"{path}.end_time")
    attributes = mapping(value["attributes"], f"{path}.attributes")
    resource = value.get("resource")
    scope = value.get("instrumentationScope") or value.get("instrumentationLibrary") or value.get("scope") or {}
    return Span(
        _id(_either(context, "traceId", "trace_id"), f"{path}.traceId"),
        _id(_either(context, "spanId", "span_id"), f"{path}.spanId"),
        _id(parent, f"{path}.parent_id") if parent else None,
        str(value.get("name") or ""),
        _with_kind(flat(attributes), value),
        start,
        end,
        [_event(event, f"{path}.events[{number}]") for number, event in items(value.get("events"), f"{path}.events")],
        list(_links(value.get("links"), f"{path}.links")),
        _error(value),
        str(scope.get("name") or "") if isinstance(scope, Mapping) else "",
        resource.get("attributes") or {} if isinstance(resource, Mapping) else {},
    )


_PARENTS = ("parent_id", "parentId", "parentSpanId", "parent_span_id")
_STARTS = ("start_time_unix_nano", "startTimeUnixNano", "start_time", "startTime", "start_time_ns")
_ENDS = ("end_time_unix_nano", "endTimeUnixNano", "end_time", "endTime", "end_time_ns")


def _context(value: Mapping[str, Any]) -> Mapping[str, Any] | None:
    for key in ("spanContext", "context", "_spanContext"):
        if isinstance(context := value.get(key), Mapping) and _either(context, "spanId", "span_id"):
            return context
    has_ids = _either(value, "spanId", "span_id") and _either(value, "traceId", "trace_id")
    return value if has_ids else None


def _with_kind(attributes: dict[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
    """Return *attributes* with the kind that Phoenix writes next to them."""
    kind = value.get("span_kind")
    if isinstance(kind, str) and kind.isupper() and "openinference.span.kind" not in attributes:
        attributes["openinference.span.kind"] = kind
    return attributes


def _id(value: object, path: str) -> str:
    """Return an id; an id of a store that is not hex stays unchanged."""
    if not isinstance(value, str) or not value:
        raise Malformed(f"an id is a text, not {value!r:.60}", path)
    try:
        return hex_id(value, path)
    except Malformed:
        return value


def _error(value: Mapping[str, Any]) -> str | None:
    status = value.get("status")
    inner: Mapping[str, Any] = status if isinstance(status, Mapping) else {}
    code = (
        _either(inner, "status_code", "code")
        or value.get("status_code")
        or (status if isinstance(status, str) else None)
    )
    if code not in _FAILED:
        return None
    return str(_either(inner, "description", "message") or value.get("status_message") or "")


def _event(event: Mapping[str, Any], path: str) -> SpanEvent:
    attributes = event.get("attributes") or {}
    time = _time(_either(event, "timestamp", "time", "time_unix_nano", "timeUnixNano"), f"{path}.timestamp")
    return SpanEvent(str(event.get("name") or ""), mapping(attributes, f"{path}.attributes"), time)


def _links(value: object, path: str) -> Iterator[tuple[str, str]]:
    for number, link in items(value, path):
        context = link.get("context") or link.get("spanContext") or link
        where = f"{path}[{number}]"
        yield (
            _id(_either(context, "traceId", "trace_id"), where),
            _id(_either(context, "spanId", "span_id"), where),
        )


def _time(value: object, path: str) -> int | None:
    """Return a time in nanoseconds: a number of nanoseconds, a pair of seconds and nanoseconds, or a text of ISO 8601.

    :raises Malformed: if it is none of these.
    """
    if isinstance(value, list) and len(value) == _PAIR and all(isinstance(part, int) for part in value):
        return integer(int(value[0]) * NANOSECONDS + int(value[1]), path)
    if isinstance(value, str) and not value.lstrip("-").isdigit():
        try:
            moment = datetime.fromisoformat(value)
        except ValueError as error:
            raise Malformed(f"this is a time, not {value!r:.60}", path) from error
        zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return round(zoned.timestamp() * 1_000_000) * 1000
    return integer(value, path)


_PAIR = 2


def _either(value: Mapping[str, Any], *names: str) -> Any:
    return next((value[name] for name in names if value.get(name) is not None), None)
