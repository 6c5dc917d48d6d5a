"""Spans in the JSON of Jaeger's query service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..span import Span, SpanEvent, flat
from .faults import Malformed, integer, items, mapping

_MICROSECOND = 1000


def is_jaeger(document: Mapping[str, Any]) -> bool:
    """Return whether *document* is an answer of the query service, or one of its traces."""
    data = document.get("data")
    traces = data if isinstance(data, list) else [document]
    return any(_is_trace(trace) for trace in traces)


def _is_trace(trace: object) -> bool:
    if not isinstance(trace, Mapping) or not isinstance(trace.get("spans"), list):
        return False
    return "traceID" in trace or any(isinstance(span, Mapping) and "spanID" in span for span in trace["spans"][:1])


def read_jaeger(document: Mapping[str, Any]) -> Iterator[Span]:
    """Yield the spans of an answer or of a trace.

    :raises Malformed: with the path of the first value that Jaeger does not write.
    """
    is_answer = isinstance(document.get("data"), list)
    for number, trace in items(document["data"] if is_answer else [document], "data"):
        path = f"data[{number}].spans" if is_answer else "spans"
        processes = mapping(trace.get("processes") or {}, "processes")
        for span_number, span in items(trace.get("spans"), path):
            yield _span(span, f"{path}[{span_number}]", trace, processes)


def _span(span: Mapping[str, Any], path: str, trace: Mapping[str, Any], processes: Mapping[str, Any]) -> Span:
    trace_id, id_ = str(span.get("traceID") or trace.get("traceID") or ""), str(span.get("spanID") or "")
    if not trace_id or not id_:
        raise Malformed("a span needs 'traceID' and 'spanID'", path)
    tags = _tags(span.get("tags"), f"{path}.tags")
    parent, links = _references(span, path)
    start = integer(span.get("startTime"), f"{path}.startTime", _MICROSECOND)
    duration = integer(span.get("duration"), f"{path}.duration", _MICROSECOND) or 0
    process = mapping(processes.get(str(span.get("processID"))) or span.get("process") or {}, f"{path}.process")
    failed = str(tags.get("otel.status_code", "")).upper() == "ERROR" or tags.get("error") in (True, "true")
    events = []
    for number, log in items(span.get("logs"), f"{path}.logs"):
        fields = _tags(log.get("fields"), f"{path}.logs[{number}].fields")
        name = str(fields.pop("event", fields.pop("name", "")))
        time = integer(log.get("timestamp"), f"{path}.logs[{number}].timestamp", _MICROSECOND)
        events.append(SpanEvent(name, fields, time))
    return Span(
        trace_id,
        id_,
        parent,
        str(span.get("operationName") or ""),
        flat(tags),
        start,
        None if start is None else start + duration,
        events,
        links,
        str(tags.get("otel.status_description") or "") if failed else None,
        str(tags.get("otel.scope.name") or tags.get("otel.library.name") or ""),
        {"service.name": process.get("serviceName"), **_tags(process.get("tags"), f"{path}.process.tags")},
    )


def _references(span: Mapping[str, Any], path: str) -> tuple[str | None, list[tuple[str, str]]]:
    """Return the id of the parent and the links: the first CHILD_OF of the same trace is the parent."""
    parent, links = span.get("parentSpanID") or None, []
    for _, reference in items(span.get("references"), f"{path}.references"):
        where = str(reference.get("traceID")), str(reference.get("spanID"))
        is_own = where[0] == span.get("traceID")
        if parent is None and is_own and reference.get("refType") == "CHILD_OF":
            parent = where[1]
        else:
            links.append(where)
    return parent, links


def _tags(value: object, path: str) -> dict[str, Any]:
    """Return Jaeger's list of typed tags as a mapping. An int64 may be a text."""
    result: dict[str, Any] = {}
    for number, tag in items(value, path):
        content = tag.get("value")
        if tag.get("type") == "int64" and isinstance(content, str):
            content = integer(content, f"{path}[{number}].value")
        elif tag.get("type") == "bool" and content in ("true", "false"):
            content = content == "true"
        result[str(tag.get("key"))] = content
    return result
