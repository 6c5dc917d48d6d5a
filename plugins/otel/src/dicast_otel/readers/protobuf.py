"""Spans in OTLP's protobuf form: concatenated requests, or requests with their lengths before them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from ..span import Span, SpanEvent, flat
from .faults import Malformed

if TYPE_CHECKING:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_ERROR = 2


def parse_request(data: bytes) -> ExportTraceServiceRequest:
    """Return the request in *data*.

    :raises Malformed: if it is not a request.
    """
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
        ExportTraceServiceRequest,  # importing takes 30 ms
    )

    try:
        request: ExportTraceServiceRequest = ExportTraceServiceRequest.FromString(data)
    except DecodeError as error:
        raise Malformed(f"this is no OTLP request in protobuf: {error}", "") from error
    return request


def read_request(request: ExportTraceServiceRequest) -> Iterator[Span]:
    """Yield the spans of a request."""
    for group in request.resource_spans:
        resource = _attributes(group.resource.attributes)
        for scoped in group.scope_spans:
            scope = scoped.scope.name
            for span in scoped.spans:
                yield _span(span, scope, resource)


def is_request(start: bytes) -> bool:
    """Return whether a file that begins with *start* is a request. A request begins with a group of spans, and a group with its resource or its scope."""
    group = _field(start, 0)
    if group is None or group[0] != _FIRST or group[1] == 0:
        return False
    inner = _field(start, group[2])
    if inner is None or inner[0] not in (_FIRST, _SECOND) or inner[1] >= group[1]:
        return False
    if inner[1] == 0:
        return True
    pair = _field(start, inner[2])  # an attribute of the resource, the scope, or a span
    return pair is not None and pair[0] in (_FIRST, _SECOND) and pair[1] < inner[1]


def delimited(stream: BinaryIO, most: int) -> Iterator[bytes]:
    """Yield the requests of a file of the Collector, which has four bytes with the length before each request.

    :raises Malformed: if the last request is cut, or a request has more than *most* bytes.
    """
    place = 0
    while head := stream.read(_LENGTH):
        length = int.from_bytes(head, "big")
        if length > most:
            raise Malformed(f"the request at byte {place:,} is cut, or longer than max_line_bytes ({most:,})", "")
        request = stream.read(length)
        if len(head) < _LENGTH or len(request) < length or not length:
            raise Malformed(f"the request at byte {place:,} is cut", "")
        yield request
        place += _LENGTH + length


_FIRST, _SECOND, _LENGTH = 0x0A, 0x12, 4


def _field(data: bytes, place: int) -> tuple[int, int, int] | None:
    """Return the tag, the length and the start of the content of the field at *place*; None if there is no field."""
    if place >= len(data):
        return None
    tag, length, shift = data[place], 0, 0
    for number in range(place + 1, min(place + 6, len(data))):
        length |= (data[number] & 0x7F) << shift
        if not data[number] & 0x80:
            return tag, length, number + 1
        shift += 7
    return None


def _span(span: Any, scope: str, resource: dict[str, Any]) -> Span:
    return Span(
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex() or None,
        span.name,
        flat(_attributes(span.attributes)),
        span.start_time_unix_nano or None,
        span.end_time_unix_nano or None,
        [SpanEvent(event.name, _attributes(event.attributes), event.time_unix_nano or None) for event in span.events],
        [(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
        span.status.message if span.status.code == _ERROR else None,
        scope,
        resource,
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _plain(pair.value) for pair in pairs}


def _plain(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    inner = getattr(value, kind)
    if kind == "array_value":
        return [_plain(item) for item in inner.values]
    if kind == "kvlist_value":
        return _attributes(inner.values)
    return inner.hex() if kind == "bytes_value" else inner
