"""The formats of files with spans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from ..span import Span
from .dumps import is_attributes, is_by_operation, is_span, read_attributes, read_dump
from .faults import Malformed
from .jaeger import is_jaeger, read_jaeger
from .mlflow import is_mlflow, read_mlflow
from .otlp import RESOURCES, is_otlp, read_otlp, read_span

__all__ = ["PLACES", "TITLES", "Malformed", "Shape", "read_document", "shape_of"]

Shape = Literal["otlp", "tempo", "jaeger", "mlflow", "dump", "operations", "attributes", "span"]

TITLES: Mapping[Shape, str] = {
    "otlp": "OTLP JSON",
    "tempo": "Tempo export",
    "jaeger": "Jaeger JSON",
    "mlflow": "traces of MLflow",
    "dump": "spans of an SDK",
    "operations": "spans of an SDK by operation",
    "attributes": "attributes of a span",
    "span": "a span of OTLP JSON",
}

PLACES = (("data",), *((key,) for key in RESOURCES), *(("trace", key) for key in RESOURCES))
"""The lists of a document whose items are read one at a time."""


def shape_of(value: object) -> Shape | None:
    """Return the format of the object *value*, None if it has no spans."""
    if not isinstance(value, Mapping):
        return None
    if is_otlp(value):
        return "tempo" if "batches" in value or "trace" in value else "otlp"
    if is_jaeger(value):
        return "jaeger"
    if is_mlflow(value):
        return "mlflow"
    if isinstance(value.get("attributes"), list) and ("spanId" in value or "span_id" in value):
        return "span"
    if is_span(value):
        return "dump"
    if is_by_operation(value):
        return "operations"
    return "attributes" if is_attributes(value) else None


def read_document(value: Mapping[str, Any], path: str = "") -> Iterator[Span]:
    """Yield the spans of one object of a file.

    :raises Malformed: with the path of the first value that its format does not have.
    """
    match shape_of(value):
        case "otlp" | "tempo":
            yield from read_otlp(value)
        case "jaeger":
            yield from read_jaeger(value)
        case "mlflow":
            yield from read_mlflow(value, path)
        case "span":
            yield read_span(value, path)
        case "dump":
            yield read_dump(value, path)
        case "operations":
            for name, spans in value.items():
                for number, span in enumerate(spans):
                    at = f"{name}[{number}]"
                    if not is_span(span):
                        raise Malformed("this is no span: it needs 'name', 'attributes' and its ids", at)
                    yield read_dump(span, at)
        case "attributes":
            yield read_attributes(value, path)
        case _:
            keys = ", ".join(map(str, list(value)[:8])) or "no keys"
            raise Malformed(f"this has no spans of a known format; it has {keys}", path)
