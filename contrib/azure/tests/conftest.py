from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import attrs
import pytest

KEY = "7c1f4f5e-3f0a-4d59-9d4a-0123456789ab"


@attrs.define
class Ingested:
    """Ingestion endpoint on loopback with its received data. *answers* are statuses for the next requests, then 200.

    A request is answered after *seconds*.
    """

    endpoint: str = ""
    paths: list[str] = attrs.field(factory=list)
    envelopes: list[dict] = attrs.field(factory=list)
    answers: list[int] = attrs.field(factory=list)
    seconds: float = 0.0

    @property
    def connection_string(self) -> str:
        return f"InstrumentationKey={KEY};IngestionEndpoint={self.endpoint}"

    def rows(self) -> list[tuple[str, dict[str, str]]]:
        """Return the names and the properties of the events, in their order."""
        events = [event["data"]["baseData"] for event in self.envelopes if event["data"]["baseType"] == "EventData"]
        return [(event["name"], event["properties"]) for event in events]

    def metrics(self) -> list[tuple[str, float, dict[str, str]]]:
        """Return the names, the values and the properties of the metrics, in their order."""
        metrics_sent = [data["data"]["baseData"] for data in self.envelopes if data["data"]["baseType"] == "MetricData"]
        return [
            (point["name"], point["value"], data["properties"]) for data in metrics_sent for point in data["metrics"]
        ]

    def take(self, handler: BaseHTTPRequestHandler) -> None:
        self.paths.append(f"{handler.command} {handler.path}")
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        status = self.answers.pop(0) if self.answers else 200
        envelopes = json.loads(gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body)
        accepted = len(envelopes) if status == 200 else max(0, len(envelopes) - 1) if status == 206 else 0
        self.envelopes += envelopes[:accepted]
        errors = [{"index": accepted, "statusCode": 400, "message": "no"}] if status != 200 else []
        text = json.dumps({"itemsReceived": len(envelopes), "itemsAccepted": accepted, "errors": errors}).encode()
        time.sleep(self.seconds)
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(text)))
        handler.send_header("Location", f"{self.endpoint}/elsewhere")
        handler.end_headers()
        handler.wfile.write(text)


@pytest.fixture
def ingested(loopback) -> Iterator[Ingested]:
    endpoint = Ingested()
    with loopback(endpoint.take) as endpoint.endpoint:
        yield endpoint
