"""The source ``otel/spans``: files with spans of OpenTelemetry, judged as conversations."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

import attrs

from dicast import DataError, Problem
from dicast.toolkit.beginning import Beginning
from dicast.toolkit.detection import Detection
from dicast.toolkit.document_parts import split_documents
from dicast.toolkit.files import error_reason, open_file
from dicast.toolkit.session_reading import Failed, SessionReading
from dicast.toolkit.session_source import SessionSource
from dicast.toolkit.sessions import Session

from .assembly import SessionAssembly
from .readers import PLACES, TITLES, Malformed, read_document, shape_of
from .readers.protobuf import delimited, is_request, parse_request, read_request
from .small_store import MOST_BYTES, SmallStore
from .store import SpanStore
from .threads import UNPLACED

_PROTOBUF = "OTLP protobuf"
_RESULT = "gen_ai.evaluation.result"
"""The name of events with the score of another judge; they are counted and not read."""


@attrs.frozen
class Spans(SessionSource):
    """Spans of OpenTelemetry as conversations: OTLP (JSON and protobuf), Jaeger, Tempo, and spans that SDKs and stores dump.

    A conversation has the spans with the same ``gen_ai.conversation.id`` or ``session.id``; without such an id, the spans of a trace. The messages
    come from the spans of models, tools and agents, by the GenAI conventions (new and old), OpenInference, OpenLLMetry, Vercel AI, MLflow, Langfuse,
    pydantic-ai, Google ADK. Each model call repeats its history, but a message, a tool call and a result count once. An agent inside another agent
    is a separate conversation, whose ``parent_id`` is the id of the outer agent's conversation. Spans of other work are counted.
    """

    title = "spans of OpenTelemetry"

    @classmethod
    def detect(cls, beginning: Beginning) -> Detection | None:
        """Return the detection of a file with spans."""
        if is_request(beginning.start) or is_request(beginning.start[4:]):
            return Detection(_PROTOBUF)
        records = [record for record in beginning.records if record is not None]
        records = [item for record in records for item in (record if isinstance(record, list) else [record])]
        shapes = [shape_of(record) for record in records]
        shape = next(iter(shapes), None)
        if shape is None or None in shapes:
            return None
        return Detection(TITLES[shape])

    def sessions(self, reading: SessionReading) -> Iterator[Session | Failed]:
        """Yield the conversations of a file; a conversation whose spans record no messages is a failed record."""
        store, results = _store(reading), 0
        try:
            for span, line in _spans(reading):
                store.add(span, line)
                if span.events:
                    results += sum(event.name == _RESULT for event in span.events)
            unplaced = store.place()
            for id_ in store.sessions():
                parts = store.parts(id_)
                assembly = SessionAssembly(parts, reading.shapes)
                unplaced.update(assembly.unplaced)
                yield _session(reading, assembly)
                if reading.shapes.marked or reading.shapes.problems:
                    reading.settle(store.line_of(parts.threads[0][0].id))
            left_out = {UNPLACED[kind]: count for kind, count in unplaced.items()}
            if store.repeated:
                left_out["spans that came twice"] = store.repeated
            if results:
                left_out["evaluation results in events of spans"] = results
            reading.totals.left_out.update(left_out)
        finally:
            store.close()


def _store(reading: SessionReading) -> SpanStore | SmallStore:
    """Return a store for the spans of a file: in memory for a small file of JSON that is not packed."""
    with open_file(reading.file.path) as file:
        is_json = file.read(1).strip() in (b"", b"{", b"[")
    return SmallStore() if is_json and reading.file.path.stat().st_size <= MOST_BYTES else SpanStore.temporary()


def _session(reading: SessionReading, assembly: SessionAssembly) -> Session | Failed:
    if assembly.failure is not None:
        return reading.failed(assembly.id, assembly.failure)
    conversation = reading.conversation(assembly.id, assembly.parent_id, assembly.parent_call)
    assembly.add_to(conversation)
    return reading.end(conversation, assembly.context, assembly.disposition, assembly.end_time)


def _spans(reading: SessionReading) -> Iterator[tuple[Any, int]]:
    """Yield the spans of a file, each with its line.

    Records without spans are reported to *reading*.
    """
    with reading.file.binary() as stream:
        start = stream.read(64)
    if is_request(start) or is_request(start[4:]):
        yield from _protobuf_spans(reading, is_delimited=not is_request(start))
        return
    records: Iterator[tuple[int, int, dict[str, Any]]]
    if reading.layout == "lines":
        records = ((line, 0, record) for line, record in reading.objects())
    elif reading.layout == "documents":
        records = split_documents(reading, PLACES)
    else:
        records = ((line, 0, record) for _, line, record in reading.records())
    for line, place, record in records:
        values = record["messages"] if set(record) == {"messages"} else [record]  # a list on one line
        for number, value in enumerate(values):
            try:
                for span in read_document(value, f"[{number}]" if len(values) > 1 else ""):
                    yield span, line
            except Malformed as error:
                path = error.path.lstrip(".").replace("[0]", f"[{place}]", 1) if place else error.path.lstrip(".")
                reading.refuse(Problem(error.message, path=path or None), line)


def _protobuf_spans(reading: SessionReading, *, is_delimited: bool) -> Iterator[tuple[Any, int]]:
    """Yield the spans of a file in protobuf; one request is in memory."""
    with reading.file.binary() as stream:
        try:
            for request in delimited(stream, reading.max_bytes) if is_delimited else _whole(stream, reading.max_bytes):
                if reading.check is not None:
                    reading.check.digest.update(request)
                for span in read_request(parse_request(request)):
                    yield span, 1
        except Malformed as error:
            reading.refuse(error.message, 1)
        except (EOFError, OSError, zlib.error) as error:
            raise DataError(
                Problem(f"the data cannot be read to its end: {error_reason(error)}", reading.file.label)
            ) from error


def _whole(stream: BinaryIO, most: int) -> Iterator[bytes]:
    data = stream.read(most + 1)
    if len(data) > most:
        raise Malformed(f"a request of OTLP is longer than max_line_bytes ({most:,})", "")
    yield data
