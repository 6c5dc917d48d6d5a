"""OTLP receiver on loopback that decodes requests with the protocol's own classes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import attrs
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@attrs.define
class Receiver:
    """Receiver of requests. *answers* are statuses for the next requests, then 200. *rejected* is reported with each 200.

    A request is answered after *seconds*.
    """

    url: str = ""
    requests: list[ExportTraceServiceRequest] = attrs.field(factory=list)
    log_requests: list[ExportLogsServiceRequest] = attrs.field(factory=list)
    headers: list[dict[str, str]] = attrs.field(factory=list)
    answers: list[int] = attrs.field(factory=list)
    rejected: int = 0
    told_too: str = "too many"
    body: bytes | None = None
    """Sent in place of a proper answer."""
    seconds: float = 0.0
    released: threading.Event = attrs.field(factory=threading.Event)
    """A request that is answered by status 0 waits for it."""

    def spans(self):
        return [
            span for request in self.requests for group in request.resource_spans
            for scope in group.scope_spans for span in scope.spans
        ]  # fmt: skip

    def logs(self):
        return [
            log for request in self.log_requests for group in request.resource_logs
            for scope in group.scope_logs for log in scope.log_records
        ]  # fmt: skip

    def span(self, name):
        [span] = [span for span in self.spans() if span.name == name]
        return span

    @staticmethod
    def attributes(carrier) -> dict[str, object]:
        """Return the attributes of a span, an event or a resource."""
        return {
            attribute.key: getattr(attribute.value, attribute.value.WhichOneof("value"))
            for attribute in carrier.attributes
        }

    def take(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        status = self.answers.pop(0) if self.answers else 200
        if status == 0:
            self.released.wait(200)
            return
        answer = ExportTraceServiceResponse()
        if status == 200:
            is_log = handler.path == "/v1/logs"
            requests, kind = (
                (self.log_requests, ExportLogsServiceRequest) if is_log else (self.requests, ExportTraceServiceRequest)
            )
            requests.append(kind.FromString(body))
            self.headers.append({name.lower(): value for name, value in handler.headers.items()})
            answer.partial_success.rejected_spans = self.rejected
            answer.partial_success.error_message = self.told_too if self.rejected else ""
        time.sleep(self.seconds)
        text = answer.SerializeToString() if self.body is None else self.body
        handler.send_response(status)
        handler.send_header("Content-Type", "application/x-protobuf")
        handler.send_header("Location", f"{self.url}/elsewhere")
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)


@pytest.fixture
def receiver(loopback) -> Iterator[Receiver]:
    receiver = Receiver()
    with loopback(receiver.take) as address:
        receiver.url = f"{address}/v1/traces"
        yield receiver
        receiver.released.set()
