"""The verdicts of a recorded run as log events in OTLP JSON, for ``dicast export``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import orjson
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from dicast.toolkit.atomic_file import AtomicFile
from dicast.toolkit.exporting import ExportCounts, ExportedRun

from .attributes import describe
from .evaluations import evaluations
from .logs import Origin, log_record, origin_of

_BATCH = 500


def write_log_events(run: ExportedRun, file: AtomicFile) -> ExportCounts:
    """Write log events ``gen_ai.evaluation.result``: a request of at most 500 a line, in the form that collectors write and read.

    An event has the ids of the judged span if the subject came from spans. Events of other subjects have no span, and are counted.
    """
    origins: dict[tuple[str, str], Origin] = {}
    for event in run.events("subject.read"):
        if (origin := origin_of(event)) is not None:
            origins[str(event.subject_kind), str(event.subject_id)] = origin
    counts, batch, left_out = 0, list[LogRecord](), Counter[str]()
    for event in run.results():
        origin = origins.get((str(event.subject_kind), str(event.subject_id)))
        for evaluation in evaluations(event, content=run.has_content):
            left_out["parents of results: their subjects are no spans"] += origin is None
            record = log_record(event, evaluation, origin or Origin(b"", b""))
            describe(record, {"dicast.subject.kind": event.subject_kind, "dicast.subject.id": event.subject_id})
            batch.append(record)
            counts += 1
            if len(batch) == _BATCH:
                file.write(_request(run.run_id, batch))
                batch = []
    if batch:
        file.write(_request(run.run_id, batch))
    return ExportCounts(counts, "log events", {reason: count for reason, count in left_out.items() if count})


def _request(run_id: str, records: Sequence[LogRecord]) -> bytes:
    """Return a line of OTLP JSON. Its ids are hexadecimal, unlike those of JSON that protobuf writes."""
    request = ExportLogsServiceRequest()
    resource = request.resource_logs.add()
    describe(resource.resource, {"service.name": "dicast", "dicast.run.id": run_id})
    scope = resource.scope_logs.add()
    scope.scope.name = "dicast"
    scope.log_records.extend(records)
    document: dict[str, Any] = MessageToDict(request, use_integers_for_enums=True)
    for item, record in zip(document["resourceLogs"][0]["scopeLogs"][0]["logRecords"], records, strict=True):
        for name, id_ in (("traceId", record.trace_id), ("spanId", record.span_id)):
            item.pop(name, None)
            if id_:
                item[name] = id_.hex()
    return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)
