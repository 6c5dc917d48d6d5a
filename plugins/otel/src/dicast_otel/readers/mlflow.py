"""Traces of MLflow in JSON, as ``Trace.to_json()`` writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..span import Span
from .faults import items
from .otlp import read_span

_SESSION = "mlflow.trace.session"


def is_mlflow(document: Mapping[str, Any]) -> bool:
    """Return whether *document* is a trace of MLflow with spans that have ids of OpenTelemetry."""
    data, info = document.get("data"), document.get("info")
    if not isinstance(data, Mapping) or not isinstance(info, Mapping) or not isinstance(data.get("spans"), list):
        return False
    return all(isinstance(span, Mapping) and "trace_id" in span and "span_id" in span for span in data["spans"])


def read_mlflow(document: Mapping[str, Any], path: str = "") -> Iterator[Span]:
    """Yield the spans of a trace, with the session of the trace.

    :raises Malformed: with the path of the first value that is no part of a span.
    """
    metadata = document["info"].get("trace_metadata")
    session = metadata.get(_SESSION) if isinstance(metadata, Mapping) else None
    named = {} if session is None else {_SESSION: session}
    for number, span in items(document["data"]["spans"], f"{path}.data.spans"):
        attributes = span.get("attributes")
        value = {**span, "attributes": {**named, **attributes}} if isinstance(attributes, Mapping) else span
        yield read_span(value, f"{path}.data.spans[{number}]")
