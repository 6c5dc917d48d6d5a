"""Values as OTLP has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from math import isfinite

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

_INT64 = range(-(1 << 63), 1 << 63)


def key_values(told: Mapping[str, object]) -> list[KeyValue]:
    """*told* as attributes; what is None, or no finite number, is left out, and an empty mapping with it."""
    return [
        KeyValue(key=as_text(key), value=value) for key, given in told.items() if (value := _any(given)) is not None
    ]


def _any(value: object) -> AnyValue | None:
    if value is None or (isinstance(value, float) and not isfinite(value)):
        return None
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int) and value in _INT64:
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, Decimal | int):
        return AnyValue(string_value=format(value, "f") if isinstance(value, Decimal) else str(value))
    return AnyValue(string_value=as_text(value))


def as_text(value: object) -> str:
    """A text as it is, anything else as JSON; without lone surrogates, which UTF-8 does not have."""
    text = value if isinstance(value, str) else json.dumps(value, default=_plain, ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace").decode()


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    return format(value, "f") if isinstance(value, Decimal) else str(value)
