"""The source ``exports/mlflow``: traces of MLflow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from dicast import Basis, RecordedScore
from dicast.toolkit.beginning import Beginning
from dicast.toolkit.detection import Detection
from dicast.toolkit.document_parts import document_parts
from dicast.toolkit.session_reading import SessionReading

from .export import ExportSource, Row
from .values import Value, decoded, first, mapping, message_of, objects, single, text

_BASES: dict[str, Basis] = {"HUMAN": "human", "LLM_JUDGE": "model", "AI_JUDGE": "model"}
_ERROR = "ERROR"


@attrs.frozen
class MLflow(ExportSource):
    """Traces of MLflow in JSON or JSON lines, as ``Trace.to_json()`` writes them.

    Feedback is recorded scores, an expectation is the reference. A trace that ended with an error is a failed row. The spans of tools are
    counted; ``otel/spans`` reads them as tool calls.
    """

    title = "traces of MLflow"
    name = "mlflow"

    @classmethod
    def detect(cls, beginning: Beginning) -> Detection | None:
        """Return the detection of traces."""
        records: Sequence[Value] = beginning.objects
        if len(records) == 1 and isinstance(records[0].get("traces"), list):
            records = objects(records[0]["traces"])
        is_trace = records and all(_is_trace(record) for record in records)
        return Detection(cls.title, specificity=1) if is_trace else None

    def rows(self, reading: SessionReading, companions: object) -> Iterator[Row]:
        """Yield the traces of a file."""
        for line, trace in _traces(reading):
            if _is_trace(trace):
                yield _row(trace, reading)
            else:
                reading.unknown("record", ", ".join([*trace][:5]) or "without keys", "")
            reading.settle(line)


def _is_trace(record: Value) -> bool:
    info = record.get("info")
    return isinstance(info, dict) and "data" in record and ("trace_id" in info or "request_id" in info)


def _traces(reading: SessionReading) -> Iterator[tuple[int, Value]]:
    with reading.file.binary() as stream:
        line = stream.readline(reading.max_bytes)
        has_more = bool(stream.read(1024).strip())
    if line.lstrip()[:1] == b"{" and line.rstrip().endswith(b"}") and (has_more or b'"traces"' not in line[:20]):
        yield from reading.objects()
        return
    document: dict[str, object] = {}
    for number, path, value in document_parts(reading, [("traces",)]):
        if path in (("traces",), ()) and isinstance(value, dict):
            yield number, value
        elif len(path) == 1:
            document[path[0]] = value
    if {"info", "data"} <= document.keys():
        yield 1, document


def _row(trace: Value, reading: SessionReading) -> Row:
    info, data = mapping(trace.get("info")), mapping(decoded(trace.get("data")))
    spans = objects(data.get("spans"))
    root = next((span for span in spans if first(span, "parent_span_id", "parent_id") is None), {})
    attributes = mapping(root.get("attributes"))
    metadata = mapping(first(info, "trace_metadata", "request_metadata"))
    tags = mapping(info.get("tags"))
    request = (
        first(data, "request")
        or first(attributes, "mlflow.spanInputs")
        or first(metadata, "mlflow.traceInputs")
        or info.get("request_preview")
    )
    response = (
        first(data, "response")
        or first(attributes, "mlflow.spanOutputs")
        or first(metadata, "mlflow.traceOutputs")
        or info.get("response_preview")
    )
    output = single(decoded(response)) if response not in (None, "null") else None
    assessments = objects(info.get("assessments"))
    expectations = {str(_name(item)): _expected(item) for item in assessments if item.get("expectation") is not None}
    state = first(info, "state", "status")
    context = {
        "name": tags.get("mlflow.traceName"),
        "state": state,
        "execution_ms": first(info, "execution_duration_ms", "execution_duration", "execution_time_ms"),
        "request_time": first(info, "request_time", "timestamp_ms"),
        "usage": decoded(metadata.get("mlflow.trace.tokenUsage")),
        "expectations": expectations or None,
        "tags": {key: value for key, value in tags.items() if not key.startswith("mlflow.")} or None,
    }
    failure = None if output is not None else "the trace has no output"
    if state == _ERROR:
        failure = f"the trace failed: {_error(spans)}"
    tools = sum(decoded(mapping(span.get("attributes")).get("mlflow.spanType")) == "TOOL" for span in spans)
    reading.totals.left_out.update({"spans of tools (otel/spans reads them)": tools} if tools else {})
    reference = next(iter(expectations.values()), None) if len(expectations) == 1 else expectations or None
    session = text(first(metadata, "mlflow.trace.session"))
    id_ = str(first(info, "trace_id", "request_id"))
    return Row(
        id_,
        single(decoded(request)),
        output,
        reference,
        context,
        _scores(assessments, reading),
        session,
        failure=failure,
    )


def _name(item: Value) -> object:
    return first(item, "assessment_name", "name")


def _expected(item: Value) -> object:
    expectation = item.get("expectation")
    return mapping(expectation).get("value", expectation)


def _error(spans: list[dict[str, object]]) -> str:
    statuses = [mapping(span.get("status")) for span in spans]
    messages = [first(status, "message", "description") for status in statuses]
    return message_of(next((message for message in messages if message), "without a message"))


def _scores(assessments: list[dict[str, object]], reading: SessionReading) -> Iterator[RecordedScore | None]:
    for item in assessments:
        if item.get("feedback") is None or item.get("valid") is False:  # invalid: a later assessment replaced it
            continue
        feedback, source = mapping(item.get("feedback")), mapping(item.get("source"))
        basis = _BASES.get(str(source.get("source_type")), "recorded")
        answer = feedback.get("value")
        if isinstance(answer, str) and answer.lower() in ("yes", "no"):  # the answers of MLflow's own judges
            answer = answer.lower() == "yes"
        if answer is None and feedback.get("error") is not None:
            answer = f"error: {message_of(feedback['error'])}"
        yield reading.scales.score(
            str(_name(item)), answer, basis=basis, reason=item.get("rationale"), by=source.get("source_id")
        )
