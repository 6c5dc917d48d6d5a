"""Values in OTLP's types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from math import isfinite

from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

_INT64 = range(-(1 << 63), 1 << 63)


def describe(carrier: Resource | Span | Span.Event | LogRecord, attributes: Mapping[str, object]) -> None:
    """Set *attributes* on *carrier* in place, which is faster than a copy. None and numbers that are not finite are left out."""
    add = carrier.attributes.add
    for key, value in attributes.items():
        if value is not None and not (isinstance(value, float) and not isfinite(value)):
            _set(add(key=as_text(key)).value, value)


def _set(target: AnyValue, value: object) -> None:
    if isinstance(value, str):
        target.string_value = as_text(value)
    elif isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, int) and value in _INT64:
        target.int_value = value
    elif isinstance(value, float):
        target.double_value = value
    elif isinstance(value, Decimal | int):
        target.string_value = format(value, "f") if isinstance(value, Decimal) else str(value)
    else:
        target.string_value = as_text(value)


def as_text(value: object) -> str:
    """Return a text unchanged, and other values as JSON, without lone surrogates, which UTF-8 lacks."""
    text = value if isinstance(value, str) else json.dumps(value, default=_plain, ensure_ascii=False)
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    return format(value, "f") if isinstance(value, Decimal) else str(value)
