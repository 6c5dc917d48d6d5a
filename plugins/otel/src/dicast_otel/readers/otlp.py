"""Spans in OTLP's JSON form: requests of an exporter, exports of Tempo, and single spans."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..span import Span, SpanEvent, flat
from .faults import Malformed, integer, items, mapping

_HEX = frozenset("0123456789abcdefABCDEF")
_USUAL_ID = re.compile("[0-9a-f]{16}(?:[0-9a-f]{16})?")
RESOURCES = ("resourceSpans", "resource_spans", "batches")
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "instrumentation_library_spans", "ilSpans")
_ERROR_CODES = (2, "2", "STATUS_CODE_ERROR", "ERROR", "Error", "error")


def is_otlp(document: Mapping[str, Any]) -> bool:
    """Return whether *document* has groups of spans by resource."""
    return any(isinstance(document.get(key), list) for key in RESOURCES) or isinstance(_trace(document), Mapping)


def read_otlp(document: Mapping[str, Any], path: str = "") -> Iterator[Span]:
    """Yield the spans of a request or an export.

    :raises Malformed: with the path of the first value that OTLP does not have.
    """
    inner = _trace(document)
    if isinstance(inner, Mapping):
        yield from read_otlp(inner, f"{path}trace.")
        return
    key = next(key for key in RESOURCES if isinstance(document.get(key), list))
    for number, group in items(document[key], f"{path}{key}"):
        where = f"{path}{key}[{number}]"
        described = mapping(group.get("resource") or {}, f"{where}.resource")
        resource = attributes_of(described.get("attributes"), f"{where}.resource.attributes")
        for name in _SCOPES:
            for scope_number, scoped in items(group.get(name), f"{where}.{name}"):
                scope_value = scoped.get("scope") or scoped.get("instrumentationLibrary") or {}
                scope = mapping(scope_value, f"{where}.{name}[{scope_number}].scope")
                scope_name = str(scope.get("name") or "")
                at = f"{where}.{name}[{scope_number}].spans"
                for span_number, span in items(scoped.get("spans"), at):
                    yield read_span(span, f"{at}[{span_number}]", scope_name, resource)


def _trace(document: Mapping[str, Any]) -> object:
    """Return the object with the groups in a response of Tempo's second API, None for another document."""
    inner = document.get("trace")
    return inner if isinstance(inner, Mapping) and any(isinstance(inner.get(key), list) for key in RESOURCES) else None


def read_span(span: Mapping[str, Any], path: str, scope: str = "", resource: Mapping[str, Any] | None = None) -> Span:
    """Return a span of OTLP, whose ids are hex or base64 and whose integers may be texts.

    :raises Malformed: with the path of the wrong value.
    """
    status = mapping(span.get("status") or {}, f"{path}.status")
    failed = status.get("code") in _ERROR_CODES
    return Span(
        _id(span, "traceId", "trace_id", path),
        _id(span, "spanId", "span_id", path),
        _id(span, "parentSpanId", "parent_span_id", path) if _either(span, "parentSpanId", "parent_span_id") else None,
        str(span.get("name") or ""),
        flat(attributes_of(span.get("attributes"), f"{path}.attributes")),
        _time(span, "startTimeUnixNano", "start_time_unix_nano", path),
        _time(span, "endTimeUnixNano", "end_time_unix_nano", path),
        [_event(event, f"{path}.events[{number}]") for number, event in items(span.get("events"), f"{path}.events")],
        [
            (_id(link, "traceId", "trace_id", place), _id(link, "spanId", "span_id", place))
            for number, link in items(span.get("links"), f"{path}.links")
            if (place := f"{path}.links[{number}]")
        ],
        str(status.get("message") or "") if failed else None,
        scope,
        resource or {},
    )


def _event(event: Mapping[str, Any], path: str) -> SpanEvent:
    attributes = attributes_of(event.get("attributes"), f"{path}.attributes")
    return SpanEvent(str(event.get("name") or ""), attributes, _time(event, "timeUnixNano", "time_unix_nano", path))


def _id(value: Mapping[str, Any], name: str, other: str, path: str) -> str:
    """Return the id with one of two names in *value*, which is at *path*."""
    id_ = value.get(name)
    if type(id_) is str and _USUAL_ID.fullmatch(id_):
        return id_
    return hex_id(value.get(other) if id_ is None else id_, f"{path}.{name}")


def _time(value: Mapping[str, Any], name: str, other: str, path: str) -> int | None:
    """Return the time with one of two names in *value*, which is at *path*."""
    time = value.get(name)
    if type(time) is str and len(time) == _DIGITS and time.isdecimal() and time.isascii():  # as exporters write it
        return int(time)
    return integer(value.get(other) if time is None else time, f"{path}.{name}")


def _either(value: Mapping[str, Any], name: str, other: str) -> Any:
    content = value.get(name)
    return value.get(other) if content is None else content


def hex_id(value: object, path: str) -> str:
    """Return an id as lower-case hex: OTLP's JSON has hex, protobuf's own JSON form has base64.

    :raises Malformed: if it is neither.
    """
    if type(value) is str and _USUAL_ID.fullmatch(value):
        return value
    if not isinstance(value, str) or not value:
        raise Malformed(f"an id is a text of hex digits, not {value!r:.60}", path)
    text = value.removeprefix("0x")
    if len(text) in (16, 32) and _HEX.issuperset(text):
        return text.lower()
    try:
        data = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if len(data) in (8, 16):
        return data.hex()
    if _HEX.issuperset(text):  # some tools leave out leading zeros
        return text.lower()
    raise Malformed(f"the id {value!r:.60} is neither hex nor base64", path)


def attributes_of(value: object, path: str) -> dict[str, Any]:
    """Return OTLP's list of keys with typed values as a mapping; a mapping stays unchanged.

    :raises Malformed: if it is neither.
    """
    if type(value) is dict:
        return value.copy()
    if type(value) is list and (simple := _simple(value)) is not None:
        return simple
    result = {}
    for number, item in items(value, path):
        key = item.get("key")
        if not isinstance(key, str):
            raise Malformed("an attribute needs 'key', a text", f"{path}[{number}]")
        result[key] = plain(item.get("value"), f"{path}[{number}].value")
    return result


def _simple(pairs: list[Any]) -> dict[str, Any] | None:
    """Return the attributes if all values are texts, numbers and booleans, as in most spans; else None."""
    result: dict[str, Any] = {}
    try:
        for pair in pairs:
            ((kind, value),) = pair["value"].items()
            type_ = type(value)
            if kind == "intValue" and type_ is str and value.isdecimal() and value.isascii() and len(value) <= _DIGITS:
                value = int(value)  # as protobuf's JSON form writes integers
            elif type_ not in _SIMPLE[kind]:
                return None
            result[pair["key"]] = value
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return result


_DIGITS = 19
_SIMPLE: Mapping[str, tuple[type, ...]] = {
    "stringValue": (str,),
    "intValue": (int,),
    "boolValue": (bool,),
    "doubleValue": (float, int),
}


def plain(value: object, path: str) -> Any:
    """Return a value of OTLP (``{"stringValue": …}``) as a plain value.

    :raises Malformed: if its type is unknown.
    """
    if value is None:
        return None
    if not isinstance(value, Mapping):
        return value  # Jaeger and some exporters write plain values
    if not value:
        return None
    key = next((key for key in value if key in _KINDS), None)
    if key is None:
        raise Malformed(f"a value is one of {', '.join(_KINDS)}, not {', '.join(map(str, value)):.60}", path)
    inner = value[key]
    kind = _KINDS[key]
    if kind == "int":
        return integer(inner, path)
    if kind == "array":
        values = inner.get("values") if isinstance(inner, Mapping) else inner
        return [plain(item, path) for item in values or ()]
    if kind == "map":
        return attributes_of(mapping(inner, path).get("values") or [], path)
    return inner


_KINDS = {
    **dict.fromkeys(("stringValue", "string_value"), "text"),
    **dict.fromkeys(("boolValue", "bool_value"), "bool"),
    **dict.fromkeys(("intValue", "int_value"), "int"),
    **dict.fromkeys(("doubleValue", "double_value"), "double"),
    **dict.fromkeys(("arrayValue", "array_value"), "array"),
    **dict.fromkeys(("kvlistValue", "kvlist_value"), "map"),
    **dict.fromkeys(("bytesValue", "bytes_value"), "bytes"),
}
